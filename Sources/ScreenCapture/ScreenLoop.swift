import Capture
import MediaCore
import Threading

/// The work of a screen source's thread from start to stop; the only one that speaks to the X server.
struct ScreenLoop {
    /// The inputs of a run.
    struct Plan: Sendable {
        var target: ScreenTarget
        var display: String?
        var showsCursor: Bool
        var sharesMemory: Bool
        var refresh: RefreshRequest
        var makeConverter: @Sendable () -> any ScreenConverter
    }

    private let plan: Plan
    private let context: CaptureContext
    private let name: String
    private let connection: XConnection
    private let scene: CapturedScene
    private let damage: DamageTracker
    private let fetcher: ImageFetcher
    private let converter: any ScreenConverter
    private var cursor: CursorTracker
    /// Where the pixels lie; `nil` while the window is hidden.
    private var layout: SceneLayout?
    private var dirty: DirtyArea
    /// The last picture, which is complete and is inside a frame; it has another size than `dirty` only while all of
    /// that is dirty.
    private var picture: VideoBuffer?
    /// Where the cursor lies in the last picture.
    private var drawnCursor: PixelArea?
    private var repeats = RepeatSchedule()
    /// The events that the server sent while the window was hidden.
    private var unseen: XEvents = []
    /// When the window's program has had time to paint what is black.
    private var painted: MonotonicInstant?
    /// When the window has first changed its size since the last picture was fetched.
    private var changed: MonotonicInstant?

    /// When to look for changes of which no event tells.
    private var nextLook: MonotonicInstant

    /// The time between two looks.
    private static let lookInterval = Duration.seconds(1)
    /// How long a window's program has to paint a new picture of the window, before that is shown as it is.
    ///
    /// Parts that it has not painted are black; most programs paint them so soon that nobody needs to see that.
    private static let paintingTime = Duration.milliseconds(250)
    /// How long a window that changes its size again and again, as while its edge is dragged, is given altogether.
    private static let longestPaintingTime = Duration.seconds(1)

    /// Connects to the display, captures until a stop is requested, and disconnects.
    ///
    /// - Throws: `ScreenError`. After `opened` it is a failure of the source.
    static func run(_ plan: Plan, _ context: CaptureContext) throws(ScreenError) {
        // xcb writes without asking for the signal to be left out; `cut` may end the connection at any time.
        blockBrokenPipeSignal()
        let display = try SessionEnvironment.current.displayName(given: plan.display)
        let name = plan.target.words(on: display)
        do throws(XFailure) {
            let connection = try XConnection(display: display) { context.isStopRequested }
            context.whenStopRequested(connection.cut)
            var loop = try ScreenLoop(plan, context, connection, name)
            context.opened(loop.format(at: loop.wantedRate))
            try loop.capture()
        } catch {
            // A stop ends the connection, too.
            if context.isStopRequested { return }
            throw ScreenError(error, target: name)
        }
    }

    private init(
        _ plan: Plan,
        _ context: CaptureContext,
        _ connection: XConnection,
        _ name: String
    ) throws(XFailure) {
        self.plan = plan
        self.context = context
        self.name = name
        self.connection = connection
        scene = try CapturedScene(plan.target, name, connection)
        let layout = try scene.locateFirst()
        self.layout = layout
        damage = try DamageTracker(connection, window: scene.window)
        fetcher = ImageFetcher(connection, sharesMemory: plan.sharesMemory)
        try fetcher.prepare(for: layout.dimensions)
        cursor = CursorTracker(connection)
        converter = plan.makeConverter()
        nextLook = MonotonicClock.now + Self.lookInterval
        dirty = DirtyArea(whole: layout.dimensions)
    }

    private var wantedRate: FrameRate { context.wanted.frameRate ?? ScreenSource.defaultFrameRate }

    /// The wanted rate, or a lower one if no sink takes as many pictures.
    private var rate: FrameRate { context.highestRate.map { min($0, wantedRate) } ?? wantedRate }

    private func format(at rate: FrameRate) -> VideoFormat {
        VideoFormat(dimensions: dirty.dimensions, frameRate: rate, pixelFormat: ScreenSource.pixelFormat)
    }

    private mutating func capture() throws(XFailure) {
        var schedule = SlotSchedule(rate: wantedRate, start: MonotonicClock.now)
        while context.wait(for: &schedule, at: { rate }) {
            // Everything that is fetched from here on is at least as new as this.
            let now = MonotonicClock.now
            let missed = schedule.takeSlot(at: now)
            try followChanges(at: now)
            let isPainted = painted.map { now >= $0 } ?? true
            if let layout, !dirty.isEmpty, isPainted {
                try take(layout, missed: missed, at: now, rate: schedule.rate)
            } else {
                // The last picture is also all that there is of a hidden window, and of one that is being painted.
                repeatPicture(at: now, rate: schedule.rate)
            }
        }
    }

    // MARK: Changes

    /// Finds out what has changed since the last look.
    private mutating func followChanges(at now: MonotonicInstant) throws(XFailure) {
        let events = try scene.takeEvents().union(unseen)
        unseen = []
        if events.contains(.destroyed) { throw scene.closed }
        var isOutdated = events.contains(.layoutChanged)
        if now >= nextLook {
            nextLook = now + Self.lookInterval
            if try scene.isOutdated(layout) { isOutdated = true }
        }
        if isOutdated { try follow(scene.locate()) }
        guard let layout else {
            // The server reports damage once, and not again until the damage has been collected.
            unseen = events.intersection([.damaged, .cursorChanged])
            return
        }
        if events.contains(.damaged) { try damage.collect(into: &dirty, from: layout.inWindow) }
        guard plan.showsCursor else { return }
        let shapeChanged = events.contains(.cursorChanged)
        try cursor.update(shapeChanged: shapeChanged)
        let area = cursor.area(from: layout.onScreen, in: scene.topLevel)
        guard area != drawnCursor || shapeChanged else { return }
        for area in [drawnCursor, area] { if let area { dirty.add(area) } }
        drawnCursor = area
    }

    private mutating func follow(_ new: SceneLayout?) throws(XFailure) {
        guard let new else {
            if layout != nil { context.interrupted(by: ScreenError.hidden(name, hasPicture: picture != nil)) }
            layout = nil
            return
        }
        if layout == nil { context.interruptionEnded() }
        defer { layout = new }
        // A window that was only moved looks as before; the pixmap has got another name all the same.
        if let layout, new.looks(like: layout), !new.isNew { return }
        if new.isPainted { painted = nil } else { awaitPainting() }
        try fetcher.prepare(for: new.dimensions)
        if new.dimensions == dirty.dimensions { dirty.addAll() } else { dirty = DirtyArea(whole: new.dimensions) }
    }

    private mutating func awaitPainting() {
        let now = MonotonicClock.now
        let first = changed ?? now
        changed = first
        painted = min(now + Self.paintingTime, first + Self.longestPaintingTime)
    }

    // MARK: Pictures

    private mutating func repeatPicture(at now: MonotonicInstant, rate: FrameRate) {
        if plan.refresh.take() { repeats.request() }
        guard let picture, repeats.isDue(at: now, tick: rate.interval) else { return }
        repeats.repeated(at: now)
        var captured = CaptureStatistics()
        captured.countCaptured(at: now)
        captured.framesRepeated = 1
        guard context.admit(captured, newestAt: now, pacedRate: rate) else { return }
        var frame = VideoFrame(buffer: picture, timestamp: now)
        frame.isRepeat = true
        context.deliver(frame)
    }

    /// Fetches what is dirty, and delivers the picture.
    private mutating func take(
        _ layout: SceneLayout,
        missed: Int,
        at now: MonotonicInstant,
        rate: FrameRate
    ) throws(XFailure) {
        var captured = CaptureStatistics()
        captured.framesMissed = missed
        captured.countCaptured(at: now)
        guard context.admit(captured, newestAt: now, pacedRate: rate) else { return }
        let buffer = converter.makePicture(layout.dimensions, from: dirty.isWhole ? nil : picture)
        do throws(XFailure) {
            for part in dirty.parts {
                try fetch(part, of: layout, into: buffer)
            }
        } catch .refused {
            // The window or the screen has just become smaller, or is gone: the next look tells.
            context.drop(.late)
            return try follow(scene.locate())
        } catch {
            context.drop(.late)
            throw error
        }
        dirty.removeAll()
        changed = nil
        _ = plan.refresh.take()
        picture = buffer
        repeats.delivered(at: now)
        let format = format(at: rate)
        context.note(format)
        if let limits = context.limitOutput(of: format) {
            let explanation = DefaultOutput.explanation(of: limits, format)
            context.warn(ScreenError(.formatLimited, target: name, explanation))
        }
        var fetched = CaptureStatistics()
        fetched.countDelay(from: now, until: MonotonicClock.now)
        context.count(fetched)
        context.deliver(VideoFrame(buffer: buffer, timestamp: now))
    }

    private func fetch(_ part: PixelArea, of layout: SceneLayout, into buffer: VideoBuffer) throws(XFailure) {
        let area = PixelArea(
            column: part.column + layout.inDrawable.column,
            row: part.row + layout.inDrawable.row,
            dimensions: part.dimensions
        )
        let (shape, place, converter) = (cursor.shape, plan.showsCursor ? drawnCursor : nil, converter)
        try unsafe fetcher.fetch(area, of: layout.drawable) { pixels in
            if let place { unsafe shape.draw(at: place, over: pixels, of: part) }
            converter.convert(unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(pixels)), of: part, into: buffer)
        }
    }
}

extension ScreenTarget {
    /// The target in words, for messages.
    func words(on display: String) -> String {
        switch self {
        case .screen: "the screen of display \(display)"
        case .monitor(let text): "monitor \(text) of display \(display)"
        case .region(let region): "region \(region) of display \(display)"
        case .window(let text): "window \(text) of display \(display)"
        }
    }
}
