import Capture
import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@testable import ScreenCapture

/// Screens and windows of a real X server.
@Suite("A screen source", .serialized, .timeLimit(.minutes(2)))
struct ScreenSourceTests {
    private let red: UInt32 = 0xE02010
    private let green: UInt32 = 0x10C030
    private let blue: UInt32 = 0x2030D0
    private let white: UInt32 = 0xFFFFFF

    @Test("The screen shows windows in their colours, and where they are moved to")
    func wholeScreen() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 200, 100), colour: red)
        let (source, sink) = try await capture(.screen, on: display)
        try await sink.shows(red, at: 150, 100, "the window")
        try await sink.shows(0, at: 20, 20, "the black root window")
        for step in 1...20 { try display.move(window, column: 100 + 15 * step, row: 60 + 10 * step) }
        try await sink.shows(red, at: 450, 300, "the window at its new place")
        try await sink.shows(0, at: 150, 100, "nothing at its old place")
        #expect(sink.now.frame?.dimensions == Dimensions(width: 640, height: 480))
        #expect(!sink.now.isDisordered)
        #expect(source.captureFormat?.dimensions == Dimensions(width: 640, height: 480))
        await source.stopCapture(for: sink)
    }

    @Test("A region shows its part of the screen, and follows what is drawn in it and not beside it")
    func region() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 200, 100), colour: red)
        // It begins at an odd column and row, and its odd sides are rounded down.
        let part = ScreenRegion(column: 151, row: 81, dimensions: Dimensions(width: 201, height: 121))
        let (source, sink) = try await capture(.region(part), on: display)
        try await sink.shows(red, at: 0, 0, "the middle of the window")
        try await sink.shows(red, at: 147, 77, "the window's last pixels")
        try await sink.shows(0, at: 152, 40, "the root window beside it")
        #expect(sink.now.frame?.dimensions == Dimensions(width: 200, height: 120))
        #expect(source.captureFormat?.dimensions == Dimensions(width: 200, height: 120))
        try display.fill(window, area(61, 31, 20, 20), white)
        try await sink.shows(white, at: 20, 20, "what is drawn inside")
        let delivered = source.captureStatistics
        try display.fill(window, area(0, 0, 40, 15), green)
        try display.sync()
        try display.move(window, column: 120, row: 60)
        try await sink.shows(white, at: 40, 20, "what moved with the window")
        try await sink.shows(red, at: 0, 0, "the window, of which the green corner is outside")
        #expect(source.captureStatistics.framesCaptured > delivered.framesCaptured && source.failure == nil)
        await source.stopCapture(for: sink)
    }

    @Test("The cursor is drawn where it is in a region")
    func cursorInRegion() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 640, 480), colour: blue)
        try display.setCursor(of: window, colour: green)
        try display.movePointer(column: 20, row: 20)
        let part = ScreenRegion(column: 300, row: 200, dimensions: Dimensions(width: 100, height: 100))
        let (source, sink) = try await capture(.region(part), on: display, showsCursor: true)
        try await sink.shows(blue, at: 50, 50, "no cursor inside")
        try display.movePointer(column: 350, row: 250)
        try await sink.shows(green, at: 50, 50, "the cursor")
        await source.stopCapture(for: sink)
    }

    @Test("A region that the screen becomes too small for is a failure that says so")
    func regionOfSmallerScreen() async throws {
        let display = try await VirtualDisplay()
        let part = ScreenRegion(column: 440, row: 380, dimensions: Dimensions(width: 200, height: 100))
        let (source, sink) = try await capture(.region(part), on: display)
        try await sink.shows(0, at: 10, 10, "the screen")
        async let failed = failure(in: source.captureEvents())
        try display.resizeScreen(Dimensions(width: 320, height: 240))
        let error = await failed
        #expect(error?.code == .regionOutside)
        #expect(error?.description.contains("320x240") == true, "\(String(describing: error))")
        await source.stopCapture(for: sink)
    }

    @Test("Without shared memory, pixels come in the answer", arguments: [false, true])
    func withoutSharedMemory(isWanted: Bool) async throws {
        let display = try await VirtualDisplay(options: isWanted ? ["-extension", "MIT-SHM"] : [])
        _ = try display.makeWindow(area(100, 60, 200, 100), colour: green)
        let source = ScreenSource(
            target: .screen,
            display: display.name,
            showsCursor: true,
            request: VideoFormatRequest(),
            sharesMemory: isWanted
        ) {
            TestConverter()
        }
        let sink = LastFrame()
        try await source.startCapture(for: sink)
        try await sink.shows(green, at: 150, 100, "the window")
        await source.stopCapture(for: sink)
    }

    @Test("A window is shown without its border, and without what covers it", arguments: [0, 3])
    func coveredWindow(border: Int) async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 200, 100), title: "Slides", colour: blue, border: border)
        let (source, sink) = try await capture(.window("slides"), on: display)
        try await sink.shows(blue, at: 0, 0, "the window's first pixel")
        try await sink.shows(blue, at: 199, 99, "the window's last pixel")
        #expect(sink.now.frame?.dimensions == Dimensions(width: 200, height: 100))
        _ = try display.makeWindow(area(0, 0, 640, 480), title: "Cover", colour: red)
        try display.fill(window, area(50, 50, 20, 20), white)
        try await sink.shows(white, at: 60, 60, "what is drawn while it is covered")
        try await sink.shows(blue, at: 10, 10, "the window and not the cover")
        await source.stopCapture(for: sink)
    }

    @Test("A window that changes its size is shown in the new size, without a failure")
    func resizedWindow() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: blue)
        let (source, sink) = try await capture(.window("Slides"), on: display)
        try await sink.shows(blue, at: 199, 99, "the window")
        // An odd side is rounded down.
        try display.resize(window, Dimensions(width: 321, height: 241))
        try await eventually("the larger window") { sink.now.frame?.dimensions == Dimensions(width: 320, height: 240) }
        try await sink.shows(blue, at: 319, 239, "the larger window")
        try display.resize(window, Dimensions(width: 100, height: 80))
        try await eventually("the smaller window") { sink.now.frame?.dimensions == Dimensions(width: 100, height: 80) }
        try await sink.shows(blue, at: 99, 79, "the smaller window")
        #expect(source.failure == nil)
        #expect(source.captureFormat?.dimensions == Dimensions(width: 100, height: 80))
        await source.stopCapture(for: sink)
    }

    // Each change began the wait for the program's painting anew: a window whose edge is dragged stood still.
    @Test("A window that changes its size all the time is shown all the same, and repeated meanwhile")
    func draggedWindow() async throws {
        let display = try await VirtualDisplay()
        // Nobody paints the window, so that its source waits for that.
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: nil)
        try display.fill(window, area(0, 0, 200, 100), blue)
        let (source, sink) = try await capture(.window("Slides"), on: display)
        try await sink.shows(blue, at: 199, 99, "the window")
        let dragging = Task {
            var step = 0
            // Not `where`: a loop without an end would go on for ever if it is cancelled outside of its sleep.
            while !Task.isCancelled {
                step += 1
                try display.resize(window, Dimensions(width: 200 + 2 * (step % 100), height: 100))
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        let before = source.captureStatistics
        try await eventually("pictures of other sizes") { (sink.now.frame?.dimensions.width ?? 0) > 210 }
        try await eventually("repeats") { source.captureStatistics.framesRepeated > before.framesRepeated }
        dragging.cancel()
        _ = await dragging.result
        await source.stopCapture(for: sink)
    }

    @Test("A screen that changes its size is shown in the new size")
    func resizedScreen() async throws {
        let display = try await VirtualDisplay()
        _ = try display.makeWindow(area(10, 10, 200, 100), colour: blue)
        let (source, sink) = try await capture(.screen, on: display)
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.resizeScreen(Dimensions(width: 320, height: 200))
        try await eventually("the smaller screen") { sink.now.frame?.dimensions == Dimensions(width: 320, height: 200) }
        try await sink.shows(blue, at: 20, 20, "the window on the smaller screen")
        #expect(source.failure == nil)
        await source.stopCapture(for: sink)
    }

    @Test("A window that is closed ends its source with the reason")
    func closedWindow() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: blue)
        let (source, sink) = try await capture(.window("Slides"), on: display)
        let events = source.captureEvents()
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.close(window)
        let error = await failure(in: events)
        #expect(error?.code == .windowClosed)
        #expect(error?.description == "Cannot capture window Slides of display \(display.name): the window was closed")
        #expect((source.failure as? ScreenError)?.code == .windowClosed)
    }

    // A hidden window delivered nothing, so that somebody who joined saw nothing, and no interruption was counted.
    @Test("A hidden window interrupts its source until it is shown again; meanwhile its last picture is repeated")
    func hiddenWindow() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: blue)
        let (source, sink) = try await capture(.window("Slides"), on: display)
        var events = source.captureEvents().makeAsyncIterator()
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.hide(window)
        guard case .interrupted(let error) = await events.next() else { throw TestFailure("no interruption") }
        #expect((error as? ScreenError)?.code == .windowHidden)
        #expect("\(error)".contains("nothing new of it can be seen"), "\(error)")
        let last = try #require(sink.now.frame)
        let before = source.captureStatistics.framesRepeated
        try await eventually("repeats") { source.captureStatistics.framesRepeated >= before + 5 }
        source.requestFrame()
        let asked = MonotonicClock.now
        try await eventually("a repeat on request") { sink.now.frame.map { $0.timestamp > asked } == true }
        #expect(sink.now.frame?.isRepeat == true && sink.now.frame?.buffer === last.buffer)
        #expect(source.captureStatistics.interruptions == 1 && source.failure == nil)
        try display.show(window)
        guard case .interruptionEnded = await events.next() else { throw TestFailure("no end of it") }
        // The new picture is repeated, too, a moment after it came.
        try await eventually("new pictures") { sink.now.frame.map { $0.buffer !== last.buffer } == true }
        try await sink.shows(blue, at: 20, 20, "the window again")
        #expect(source.captureStatistics.interruptions == 1 && !sink.now.isDisordered)
        await source.stopCapture(for: sink)
    }

    // No event tells of it, and its last picture was repeated as a present one.
    @Test("A window is interrupted, too, when only the window that it is in is hidden, as by some window managers")
    func hiddenWithParent() async throws {
        let display = try await VirtualDisplay()
        let frame = try display.makeWindow(area(10, 10, 240, 140), colour: 0x808080)
        let window = try display.makeWindow(area(20, 20, 200, 100), title: "Slides", colour: blue, in: frame)
        let (source, sink) = try await capture(.window("\(window)"), on: display)
        var events = source.captureEvents().makeAsyncIterator()
        try await sink.shows(blue, at: 20, 20, "the window")
        for _ in 0..<2 {
            try display.hide(frame)
            guard case .interrupted(let error) = await events.next() else { throw TestFailure("no interruption") }
            #expect((error as? ScreenError)?.code == .windowHidden)
            let last = try #require(sink.now.frame)
            try display.show(frame)
            guard case .interruptionEnded = await events.next() else { throw TestFailure("no end of it") }
            try await eventually("new pictures") { sink.now.frame.map { $0.buffer !== last.buffer } == true }
            try await sink.shows(blue, at: 20, 20, "the window again")
        }
        #expect(source.captureStatistics.interruptions == 2 && source.failure == nil)
        await source.stopCapture(for: sink)
    }

    @Test("A window that is hidden when its source starts is an error that says that there is no picture")
    func hiddenAtTheStart() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: blue)
        try display.hide(window)
        for target in [ScreenTarget.window("\(window)"), .window("Slides"), .window("slide")] {
            let source = ScreenSource(target: target, display: display.name)
            let error = await #expect(throws: ScreenError.self) { try await source.startCapture() }
            #expect(error?.code == .windowHidden, "\(target): \(String(describing: error))")
            #expect(error?.description.contains("there is no picture of it yet; show it") == true)
        }
    }

    @Test("A window that is hidden while it grows repeats the last picture that it had")
    func hiddenWhileGrowing() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: blue)
        // The source looks twice a second: it sees the growing and the hiding at one look.
        let request = VideoFormatRequest(frameRate: FrameRate(2))
        let (source, sink) = try await capture(.window("Slides"), on: display, request: request)
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.resize(window, Dimensions(width: 320, height: 240))
        try display.hide(window)
        try await eventually("an interruption") { source.captureStatistics.interruptions == 1 }
        let before = sink.now.count
        try await eventually("a repeat") { sink.now.count > before }
        #expect(sink.now.frame?.isRepeat == true)
        try display.show(window)
        try await eventually("the larger window") { sink.now.frame?.dimensions == Dimensions(width: 320, height: 240) }
        try await sink.shows(blue, at: 319, 239, "the larger window")
        await source.stopCapture(for: sink)
    }

    @Test("A window that was drawn in just before it was hidden is followed again once it is shown")
    func drawnAndHidden() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 10, 200, 100), title: "Slides", colour: blue)
        // The source looks five times a second: it sees the drawing and the hiding at one look.
        let request = VideoFormatRequest(frameRate: FrameRate(5))
        let (source, sink) = try await capture(.window("Slides"), on: display, request: request)
        var events = source.captureEvents().makeAsyncIterator()
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.fill(window, area(0, 0, 200, 100), red)
        try display.hide(window)
        guard case .interrupted = await events.next() else { throw TestFailure("no interruption") }
        try display.show(window)
        guard case .interruptionEnded = await events.next() else { throw TestFailure("no end of it") }
        try await sink.shows(blue, at: 20, 20, "the window again")
        try display.fill(window, area(0, 0, 200, 100), green)
        try await sink.shows(green, at: 20, 20, "what is drawn afterwards")
        await source.stopCapture(for: sink)
    }

    @Test("A display that goes away fails its source, and a start then says why", arguments: [SIGKILL, SIGTERM])
    func lostDisplay(signal: Int32) async throws {
        let display = try await VirtualDisplay()
        let (source, sink) = try await capture(.screen, on: display)
        let events = source.captureEvents()
        try await eventually("the screen") { sink.now.count > 0 }
        display.server.send(signal)
        #expect(await failure(in: events)?.code == .displayLost)
        await #expect { try await source.startCapture() } throws: { error in
            (error as? ScreenError)?.code == .displayUnreachable
        }
    }

    @Test("A display that does not answer is an error after the stated time, and a stop need not wait for it")
    func stoppedDisplay() async throws {
        let display = try await VirtualDisplay()
        display.server.send(SIGSTOP)
        defer { display.server.send(SIGCONT) }
        let source = ScreenSource(display: display.name)
        let began = MonotonicClock.now
        async let start: Void = source.startCapture()
        try await Task.sleep(for: .milliseconds(200))
        await source.stopCapture()
        _ = try? await start
        #expect(MonotonicClock.now.duration(since: began) < ScreenSource.patience)
        #expect { try ScreenSource.windows(display: display.name) } throws: { error in
            (error as? ScreenError)?.code == .noAnswer
        }
    }

    @Test("The cursor is drawn where it is moved to, and only if it is wanted", arguments: [true, false])
    func cursor(isWanted: Bool) async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 640, 480), colour: blue)
        try display.setCursor(of: window, colour: green)
        try display.movePointer(column: 100, row: 100)
        let (source, sink) = try await capture(.screen, on: display, showsCursor: isWanted)
        try await sink.shows(isWanted ? green : blue, at: 108, 108, "the cursor")
        try display.movePointer(column: 301, row: 201)
        // A change far from the cursor, so that there is a picture without a cursor too.
        try display.fill(window, area(500, 400, 20, 20), white)
        try await sink.shows(white, at: 510, 410, "the square")
        try await sink.shows(isWanted ? green : blue, at: 308, 208, "the cursor at its new place")
        try await sink.shows(blue, at: 108, 108, "no cursor at the old place")
        try await sink.shows(blue, at: 330, 208, "no cursor beside it")
        try display.setCursor(of: window, colour: red)
        try await sink.shows(isWanted ? red : blue, at: 308, 208, "another cursor")
        await source.stopCapture(for: sink)
    }

    @Test("The cursor is drawn in a window only while nothing covers the window there")
    func cursorInWindow() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(50, 40, 200, 100), title: "Slides", colour: blue)
        try display.setCursor(of: window, colour: green)
        try display.movePointer(column: 150, row: 90)
        let (source, sink) = try await capture(.window("Slides"), on: display, showsCursor: true)
        try await sink.shows(green, at: 108, 58, "the cursor")
        let cover = try display.makeWindow(area(0, 0, 640, 480), title: "Cover", colour: red)
        try await sink.shows(blue, at: 108, 58, "no cursor")
        try display.close(cover)
        try await sink.shows(green, at: 108, 58, "the cursor again")
        await source.stopCapture(for: sink)
    }
}
