import ArgumentParser
import Foundation
import RoomKit
import Threading
import UnixSignals
import VideoProcessing

/// Draws the pictures of a track on the terminal, with a status below, on a thread of its own.
///
/// Depth 1: the newest picture wins. At most 15 pictures a second are drawn, because each takes up to a megabyte. It
/// uses sixels if the terminal says that it has them, and half blocks in 24-bit colours otherwise. A terminal that takes
/// bytes slowly gets fewer pictures.
final class PreviewScreen: VideoRenderer {
    private struct State: Sendable {
        var frame: VideoFrame?
        var status = ""
        /// Whether the picture is not drawn yet, or to be drawn again.
        var isPictureStale = true
        /// Whether the status is not drawn yet.
        var isStatusStale = false
        var isClosed = false
        /// The pieces of output that the terminal has taken.
        var pieces = 0
        var isEnded = false
        var isRestored = false
    }

    private static let interval = Duration.nanoseconds(1_000_000_000 / 15)
    /// What is written at once, in bytes.
    ///
    /// A pseudo-terminal of Linux wakes a writer after each 4 KiB that were read.
    private static let pieceSize = 4096
    /// How long a terminal may take for a piece at the end; a slow one, of 20 kbit/s, takes 1.6 s.
    static let usualPatience = Duration.seconds(2)

    private let device: TerminalDevice
    private let answers: TerminalAnswers
    private let patience: Duration
    private let state = Monitor(State())

    /// Takes over the terminal, which must be standard output.
    ///
    /// - Parameters:
    ///   - device: The terminal.
    ///   - patience: How long it may take for a piece of output when the preview is closed.
    /// - Throws: If the system has no thread.
    init(
        on device: TerminalDevice = TerminalDevice(),
        patience: Duration = usualPatience
    ) throws(CommandFailure) {
        self.device = device
        self.patience = patience
        answers = device.ask()
        do throws(ThreadShortage) {
            _ = try WorkerThread(name: "preview") { [self] in
                draw()
                device.write(TerminalDevice.ending)
                state.change { $0.isEnded = true }
            }
        } catch {
            device.restoreSettings()
            throw CommandFailure(.unavailable, "There is no preview: \(error).")
        }
    }

    func render(_ frame: VideoFrame) {
        state.change { ($0.frame, $0.isPictureStale) = (frame, true) }
    }

    /// Takes the picture away.
    func clear() {
        state.change { ($0.frame, $0.isPictureStale) = (nil, true) }
    }

    /// Shows a line below the picture.
    func setStatus(_ line: String) {
        state.change { ($0.status, $0.isStatusStale) = (line, true) }
    }

    /// Draws the last picture again, for a terminal whose size has changed.
    func resized() {
        state.change { $0.isPictureStale = true }
    }

    /// Draws again whenever the system says that the size has changed, as long as there is a preview.
    func heedResizing() async {
        let changes = await UnixSignalsSequence(trapping: .sigwinch)
        Task { [weak self] in
            for await _ in changes { self?.resized() }
        }
    }

    /// Ends drawing and gives the terminal back as it was; a second call does nothing.
    ///
    /// The rest of a picture that is being written is given up. A terminal that takes nothing for the time of the
    /// patience is not waited for: it is left as it is, unless it takes something before the program ends.
    func close() {
        state.change { $0.isClosed = true }
        // At most two pieces follow: the present one, and the ending.
        while true {
            let before = state.withLock { $0.pieces }
            let isEnded = state.wait(until: MonotonicClock.now + patience) { state -> Bool? in
                state.isEnded || state.pieces > before ? state.isEnded : nil
            }
            guard isEnded == false else { break }
        }
        let isFirst = state.withLock { state in
            defer { state.isRestored = true }
            return !state.isRestored
        }
        if isFirst { device.restoreSettings() }
    }

    /// Whether drawing is to end.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    // MARK: On the preview's thread

    private func draw() {
        device.write(TerminalDevice.beginning)
        var canvas = PreviewCanvas(answers)
        while let (frame, status, isPictureStale) = next() {
            let began = MonotonicClock.now
            write(canvas.draw(frame, isNew: isPictureStale, status: status, on: device.size))
            _ = state.wait(until: began + Self.interval) { $0.isClosed ? true : nil }
        }
    }

    /// Waits for something to draw; `nil` once the preview is closed.
    private func next() -> (frame: VideoFrame?, status: String, isPictureStale: Bool)? {
        state.wait { state -> (frame: VideoFrame?, status: String, isPictureStale: Bool)?? in
            if state.isClosed { return .some(nil) }
            guard state.isPictureStale || state.isStatusStale else { return nil }
            defer { (state.isPictureStale, state.isStatusStale) = (false, false) }
            return (state.frame, state.status, state.isPictureStale)
        } ?? nil
    }

    /// Writes `output` piece by piece, and gives up the rest when the preview is closed.
    private func write(_ output: [UInt8]) {
        var rest = output[...]
        while !rest.isEmpty, !isClosed {
            device.write(rest.prefix(Self.pieceSize))
            rest = rest.dropFirst(Self.pieceSize)
            state.change { $0.pieces += 1 }
        }
    }
}

/// Composes what the terminal is sent for each picture; memory is reused.
struct PreviewCanvas {
    private let answers: TerminalAnswers
    private var painter: any PicturePainter
    private let rotator = FrameScaler()
    private var scaler = FrameScaler()
    private var terminal: TerminalSize?
    private var layout: PreviewLayout?
    private var output: [UInt8] = []

    init(_ answers: TerminalAnswers) {
        self.answers = answers
        painter = HalfBlockPainter()
    }

    /// Returns what the terminal is sent for a picture with a status below.
    ///
    /// If the picture is not new, and neither is the terminal's size, that is the status alone.
    mutating func draw(_ frame: VideoFrame?, isNew: Bool, status: String, on terminal: TerminalSize) -> [UInt8] {
        output.removeAll(keepingCapacity: true)
        if isNew || terminal != self.terminal { paint(frame, on: terminal) }
        output.append(row: terminal.rows, column: 1)
        // Without wrapping: characters may be two cells wide, and a wrapped line would move the picture up.
        output.append("\u{1B}[?7l")
        output += Array(status.filter { !$0.isNewline }.prefix(terminal.columns - 1).utf8)
        output.append("\u{1B}[K\u{1B}[?7h")
        return output
    }

    /// Appends the picture, and before it what clears the terminal if its place has changed.
    private mutating func paint(_ frame: VideoFrame?, on terminal: TerminalSize) {
        let upright = frame.map { rotator.upright($0) }
        let layout = upright.flatMap { arrange($0.dimensions, on: terminal) }
        if terminal != self.terminal || layout != self.layout {
            output.append("\u{1B}[0m\u{1B}[2J")
            (self.terminal, self.layout) = (terminal, layout)
            // A pool holds buffers of one size.
            scaler = FrameScaler()
        }
        guard let upright, let layout else { return }
        painter.paint(scaler.fit(upright, to: layout.dimensions).buffer, layout, into: &output)
    }

    /// Finds the picture's place; with sixels, if the terminal has them and says how large its cells are.
    private mutating func arrange(_ picture: Dimensions, on terminal: TerminalSize) -> PreviewLayout? {
        if answers.hasSixels,
            let layout = PreviewLayout(sixelsFor: picture, on: terminal, limit: answers.largestPicture)
        {
            if !(painter is SixelPainter) { painter = SixelPainter(registers: answers.registers) }
            return layout
        }
        if !(painter is HalfBlockPainter) { painter = HalfBlockPainter() }
        return PreviewLayout(halfBlocksFor: picture, on: terminal)
    }
}

/// The option of commands that can show pictures on the terminal.
struct PreviewOptions: ParsableArguments {
    @Flag(help: "Show the pictures on this terminal: by sixels where it has them, otherwise by coloured half blocks.")
    var preview = false

    /// Checks that there is a terminal to draw on.
    func check(isJSON: Bool) throws {
        guard preview else { return }
        guard !isJSON else { throw ValidationError("--preview and --json both need standard output: leave one out.") }
        guard isatty(STDOUT_FILENO) == 1 else {
            throw ValidationError("--preview needs standard output to be a terminal; run it in one, or leave it out.")
        }
        guard !Terminal.isDumb else {
            throw ValidationError("--preview cannot draw on this terminal, whose TERM is dumb; use another one.")
        }
    }

    /// Takes over the terminal, if asked to, until `Terminal.endPreview()`.
    func begin() async throws -> PreviewScreen? {
        guard preview else { return nil }
        let screen = try PreviewScreen()
        Terminal.show(screen)
        await screen.heedResizing()
        return screen
    }
}
