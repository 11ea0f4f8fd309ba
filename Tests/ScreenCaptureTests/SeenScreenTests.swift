import MediaCore
import MediaFiles
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@testable import Capture
@testable import ScreenCapture

/// What a viewer sees of a screen, compared with what was drawn on it.
@Suite("The picture of a published screen", .serialized, .timeLimit(.minutes(3)))
struct SeenScreenTests {
    /// Publishes what `target` shows, and joins a viewer of it.
    private func show(
        _ target: ScreenTarget,
        of display: VirtualDisplay,
        on stage: Stage
    ) async throws -> (robot: Member, viewer: Member, remote: RemoteVideoTrack) {
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let source = ScreenSource(target: target, display: display.name, showsCursor: false)
        try await robot.room.localParticipant.publish(LocalVideoTrack(source: source))
        return (robot, viewer, try await viewer.subscribedTrack())
    }

    @Test("A page is sharp a second after it was drawn, and soon for a viewer who joins long after")
    func sharp() async throws {
        let size = Dimensions(width: 1280, height: 720)
        let display = try await VirtualDisplay(size)
        let window = try display.makeWindow(area(0, 0, 1280, 720), title: "Page", colour: 0xFFFFFF)
        let first = Drawing.page(size)
        try display.draw(first, into: window)
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let source = ScreenSource(target: .window("Page"), display: display.name)
        let sink = LastFrame()
        source.sinks.add(sink)
        let local = LocalVideoTrack(source: source)
        try await robot.room.localParticipant.publish(local)
        #expect(local.name == "screen" && local.sourceKind == "screen")
        #expect(source.captureFormat?.frameRate == FrameRate(15))
        try await eventually("the page stands still") { local.statistics.framesRepeated >= 5 }
        #expect(sink.now.frame?.isUpright == true)
        // Nobody was there so far.
        let viewer = try await stage.join("viewer")
        let remote = try await viewer.subscribedTrack()
        let pictures = ShownPictures(of: remote)
        let seen = try await pictures.showsSharply(first, "the page")
        #expect(try #require(seen.pixel(640, 8)).isNear(Pixel(Drawing.bar), within: 8))
        #expect(remote.statistics.freezeCount == 0 && remote.sourceKind == "screen")
        if let path = ProcessFolder.pictures { try PNGWriter().write(seen, to: "\(path)/page.png", replacing: true) }

        let second = Drawing.page(size, seed: 8)
        pictures.forget()
        try display.draw(second, into: window)
        try await pictures.isSharpAfterASecond(second, since: MonotonicClock.now, "the second page")

        let keyframes = remote.statistics.keyframes
        // A minute, where the tests that take long run, and not with each way to build.
        try await Task.sleep(for: .seconds(Program.isAllowed ? 60 : 5))
        pictures.forget()
        for number in 1...3 {
            let late = try await stage.join("late viewer \(number)")
            let track = try await late.subscribedTrack()
            let latePictures = ShownPictures(of: track)
            try await eventually("a picture of the page that stood still") { !latePictures.all.isEmpty }
            #expect(latePictures.all.allSatisfy { second.lumaPSNR($0) > 35 })
            #expect(track.statistics.keyframes == 1)
            await late.room.disconnect()
        }
        // The one who was there all the time: a keyframe for the others would have been coarse.
        #expect(remote.statistics.keyframes == keyframes)
        #expect(pictures.all.allSatisfy { second.lumaPSNR($0) > 35 })
        await viewer.room.disconnect()
        await robot.room.disconnect()
    }

    @Test("A window that is drawn in and moved 15 times a second is seen where it was, and is sharp once it rests")
    func moving() async throws {
        let size = Dimensions(width: 1280, height: 720)
        let display = try await VirtualDisplay(size)
        // The server itself paints what the moving window uncovers, if that is of one colour.
        var ground = Drawing(size, 0)
        for stripe in 0..<36 {
            let place = area(0, 20 * stripe, size.width, 20)
            let colour: UInt32 = stripe.isMultiple(of: 2) ? 0xF0F0F0 : 0xC0D0E0
            ground.fill(place, colour)
            _ = try display.makeWindow(place, colour: colour)
        }
        var content = Drawing.page(Dimensions(width: 160, height: 120), seed: 3)
        let window = try display.makeWindow(area(16, 40, 160, 120), title: "Moving", colour: 0xFFFFFF)
        try display.draw(content, into: window)
        var states: [(drawing: Drawing, drawn: MonotonicInstant)] = []
        /// Notes what the screen shows from now on.
        func note(column: Int, row: Int) {
            let drawn = MonotonicClock.now
            var drawing = ground
            drawing.draw(content, column: column, row: row)
            states.append((drawing, drawn))
        }
        note(column: 16, row: 40)
        let stage = try Stage()
        let (robot, viewer, remote) = try await show(.screen, of: display, on: stage)
        let pictures = ShownPictures(of: remote)
        try await pictures.showsSharply(states[0].drawing, "the window before it moves")

        let tracks = await robot.room.localParticipant.videoTracks
        let local = try #require(tracks.first)
        let before = local.statistics
        var allowed = ScreenSource.defaultFrameRate
        pictures.forget()
        for step in 1...36 {
            let grey: UInt32 = [0x202020, 0xE0E0E0, 0x606060, 0xA0A0A0][step % 4]
            try display.fill(window, area(0, 80, 160, 40), grey)
            content.fill(area(0, 80, 160, 40), grey)
            note(column: 16 + 12 * (step - 1), row: 40 + 6 * (step - 1))
            try display.move(window, column: 16 + 12 * step, row: 40 + 6 * step)
            note(column: 16 + 12 * step, row: 40 + 6 * step)
            try await Task.sleep(for: .milliseconds(60))
            if let rate = local.source.sinks.highestRate { allowed = min(allowed, rate) }
        }
        let after = local.statistics
        let last = try #require(states.last)
        try await pictures.isSharpAfterASecond(last.drawing, since: last.drawn, "the window at rest")

        let moving = pictures.all.filter {
            !$0.isRepeat && $0.timestamp >= states[1].drawn && $0.timestamp <= last.drawn
        }
        let matches = try moving.map { frame in
            let sums = states.map { $0.drawing.sum(of: frame, step: 16) }
            return try #require(sums.indices.min { sums[$0] < sums[$1] })
        }
        // What changes while the source fetches it can be torn.
        let clear = zip(moving, matches).filter { states[$1].drawing.lumaPSNR($0) > 30 }
        // What a busy machine had no time for is counted, and is not the source's fault.
        let missed = after.framesMissed - before.framesMissed
        let captured = after.newPictures - before.newPictures
        let left = after.framesDropped.total + after.framesExpired - before.framesDropped.total - before.framesExpired
        let rate = Double(captured + missed) / last.drawn.duration(since: states[1].drawn).seconds
        let allowance = allowed.framesPerSecond / 15
        #expect((8 * allowance...20).contains(rate), "8 to 20 pictures a second, before \(before), after \(after)")
        let fewest = min(12, max(2, (captured - left) / 2))
        let isMostlyClear = clear.count >= fewest && clear.count * 10 >= moving.count * 8
        #expect(isMostlyClear, "\(clear.count) of \(moving.count), \(after)")
        let order = clear.map { $0.1 }
        #expect(Set(order).count >= fewest && order == order.sorted(), "\(order)")
        // A picture is as new as its stamp. The server may tell of a change a little after it.
        #expect(
            clear.allSatisfy { frame, match in
                match >= states.lastIndex { $0.drawn <= frame.timestamp - .milliseconds(250) } ?? 0
            }
        )
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A screen that changes its size while it is published is seen in the new size on the same track")
    func resized() async throws {
        let (large, small) = (Dimensions(width: 1280, height: 720), Dimensions(width: 960, height: 540))
        let display = try await VirtualDisplay(large)
        let window = try display.makeWindow(area(0, 0, 1280, 720), colour: 0xFFFFFF)
        let page = Drawing.page(large)
        try display.draw(page, into: window)
        let stage = try Stage()
        let (robot, viewer, remote) = try await show(.screen, of: display, on: stage)
        let pictures = ShownPictures(of: remote)
        try await pictures.showsSharply(page, "the page")
        // The server clears windows when it resizes the screen, and their programs draw them anew.
        let second = Drawing.page(small, seed: 8)
        try display.resizeScreen(small)
        try display.draw(second, into: window)
        try await pictures.isSharpAfterASecond(second, since: MonotonicClock.now, "another page in the small size")
        try display.resizeScreen(large)
        try display.draw(page, into: window)
        try await pictures.isSharpAfterASecond(page, since: MonotonicClock.now, "the page in the large size again")
        #expect(viewer.events.count { if case .trackSubscribed = $0 { true } else { false } } == 1)
        try await eventually("both changes count, not \(remote.statistics.sizeChanges)") {
            remote.statistics.sizeChanges == 2
        }
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("Text of 10 pixels' height is seen sharply, just as the X server drew it")
    func text() async throws {
        let size = Dimensions(width: 640, height: 480)
        let display = try await VirtualDisplay(size)
        let window = try display.makeWindow(area(0, 0, 640, 480), title: "Text", colour: 0xFFFFFF)
        var random = SeededGenerator(seed: 5)
        let lines = (0..<32).map { _ in
            String(
                (0..<100).map { _ in
                    "abcdefghijklmnopqrstuvwxyz ABCDE 0123456789 .,;".randomElement(using: &random) ?? " "
                }
            )
        }
        try display.write(lines, into: window)
        let drawn = Drawing(size, pixels: try display.pixels(of: window, size))
        #expect(drawn.luma.count { $0 == 16 } > 20_000, "there is black text")
        let stage = try Stage()
        let (robot, viewer, remote) = try await show(.window("Text"), of: display, on: stage)
        let seen = try await ShownPictures(of: remote).showsSharply(drawn, "the text")
        if let path = ProcessFolder.pictures { try PNGWriter().write(seen, to: "\(path)/text.png", replacing: true) }
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }
}

extension LocalVideoTrackStatistics {
    /// The captured frames that show something new.
    fileprivate var newPictures: Int { framesCaptured - framesRepeated }
}
