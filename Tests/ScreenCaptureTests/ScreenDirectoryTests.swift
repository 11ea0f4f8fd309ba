import CXCB
import Foundation
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing

@testable import ScreenCapture

/// Finding displays, monitors and windows, and what is said if there are none.
@Suite("A screen directory", .serialized, .timeLimit(.minutes(2)))
struct ScreenDirectoryTests {
    @Test("Monitors and windows are listed, and can be captured by number and name")
    func lists() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 20, 120, 90), title: "Slides of today", colour: 0x10C030)
        let monitors = try ScreenSource.monitors(display: display.name)
        let monitor = try #require(monitors.first)
        #expect(monitors.count == 1 && monitor.dimensions == Dimensions(width: 640, height: 480))
        let windows = try ScreenSource.windows(display: display.name)
        #expect(windows.map(\.title) == ["Slides of today"] && windows.map(\.identifier) == [window])
        for target in [
            ScreenTarget.monitor(monitor.name), .monitor("0"), .window(windows[0].name), .window("\(window)"),
            .window("of TODAY"),
        ] {
            let (source, sink) = try await capture(target, on: display)
            let place = if case .monitor = target { (70, 65) } else { (60, 45) }
            try await sink.shows(0x10C030, at: place.0, place.1, "\(target)")
            await source.stopCapture(for: sink)
        }
    }

    @Test("A title in Latin-1, as old programs have it, is read", arguments: [String.Encoding.isoLatin1, .utf8])
    func oldTitle(encoding: String.Encoding) async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(10, 20, 120, 90), colour: 0x10C030)
        try display.setTitle(Array(#require("Übersicht".data(using: encoding))), of: window)
        #expect(try ScreenSource.windows(display: display.name).map(\.title) == ["Übersicht"])
    }

    // Titles were those of the frames, which have none.
    @Test("A program's window is found in its frame where the window manager lists none", arguments: [1, 3])
    func frames(depth: Int) async throws {
        let display = try await VirtualDisplay()
        var parent: xcb_window_t?
        for _ in 0..<depth { parent = try display.makeWindow(area(10, 10, 200, 150), colour: 0x2030D0, in: parent) }
        _ = try display.makeWindow(area(0, 0, 200, 20), title: "a bar", in: parent)
        let window = try display.makeWindow(area(0, 20, 120, 90), title: "Slides", colour: 0x10C030, in: parent)
        try display.mark(window)
        _ = try display.makeWindow(area(0, 0, 50, 50), title: "inside", in: window)
        let plain = try display.makeWindow(area(300, 0, 50, 50), title: "A menu")
        let windows = try ScreenSource.windows(display: display.name)
        #expect(windows.map(\.title) == ["Slides", "A menu"] && windows.map(\.identifier) == [window, plain])
        let (source, sink) = try await capture(.window("Slides"), on: display)
        try await sink.shows(0x10C030, at: 60, 70, "the window")
        #expect(sink.now.frame?.dimensions == Dimensions(width: 120, height: 90))
        await source.stopCapture(for: sink)
    }

    @Test("A monitor is shown from its place on the screen, in its size")
    func secondMonitor() async throws {
        let display = try await VirtualDisplay()
        _ = try display.makeWindow(area(0, 0, 640, 480), colour: 0x2030D0)
        _ = try display.makeWindow(area(400, 100, 40, 30), colour: 0x10C030)
        try display.addMonitor("Right", area(400, 100, 200, 150))
        let monitor = try #require(ScreenSource.monitors(display: display.name).first { $0.name == "Right" })
        #expect((monitor.column, monitor.row) == (400, 100))
        #expect(monitor.dimensions == Dimensions(width: 200, height: 150))
        let (source, sink) = try await capture(.monitor("Right"), on: display)
        try await sink.shows(0x10C030, at: 20, 15, "what is in its corner")
        try await sink.shows(0x2030D0, at: 120, 90, "what is around that")
        #expect(sink.now.frame?.dimensions == Dimensions(width: 200, height: 150))
        await source.stopCapture(for: sink)
    }

    // Each look for its pixels was refused, for ever, and nobody was told.
    @Test("A monitor that the screen no longer has is cut at the screen's edge, and one beyond it is lost")
    func monitorBeyondScreen() async throws {
        let display = try await VirtualDisplay()
        _ = try display.makeWindow(area(0, 0, 640, 480), colour: 0x2030D0)
        try display.addMonitor("Right", area(300, 100, 300, 150))
        let (source, sink) = try await capture(.monitor("Right"), on: display)
        try await sink.shows(0x2030D0, at: 20, 15, "its picture")
        try display.resizeScreen(Dimensions(width: 400, height: 300))
        try await eventually("what is left of it") {
            sink.now.frame?.dimensions == Dimensions(width: 100, height: 150)
        }
        try display.resizeScreen(Dimensions(width: 200, height: 200))
        try await eventually("a failure") { (source.failure as? ScreenError)?.code == .monitorLost }
        await source.stopCapture(for: sink)
        let late = ScreenSource(target: .monitor("Right"), display: display.name)
        let error = await #expect(throws: ScreenError.self) { try await late.startCapture() }
        #expect(error?.code == .monitorLost && "\(String(describing: error))".contains("which is 200x200"))
    }

    @Test("On Xwayland, which its monitors' names tell, there are no monitors, no screen is captured, and windows are")
    func xwayland() async throws {
        let display = try await VirtualDisplay()
        _ = try display.makeWindow(area(10, 20, 120, 90), title: "Slides", colour: 0x10C030)
        #expect(try ScreenSource.monitors(display: display.name).count == 1)
        #expect(try !DisplayInspection(of: display.name).isXwayland)
        try display.addMonitor("XWAYLAND0", area(0, 0, 640, 480))
        #expect(try ScreenSource.monitors(display: display.name).isEmpty)
        #expect(try DisplayInspection(of: display.name).isXwayland)
        for target in [ScreenTarget.screen, .monitor("XWAYLAND0"), .monitor("0")] {
            let source = ScreenSource(target: target, display: display.name)
            let error = await #expect(throws: ScreenError.self) { try await source.startCapture() }
            #expect(error?.code == .waylandSession, "\(target): \(String(describing: error))")
            let checked = #expect(throws: ScreenError.self) { try ScreenSource.check(target, display: display.name) }
            #expect(checked?.description == error?.description)
            #expect(
                error?.description.contains("this is a Wayland session, whose screen no X11 program can see") == true,
                "\(String(describing: error))"
            )
        }
        #expect(try ScreenSource.windows(display: display.name).map(\.title) == ["Slides"])
        try ScreenSource.check(.window("Slides"), display: display.name)
        let (source, sink) = try await capture(.window("Slides"), on: display)
        try await sink.shows(0x10C030, at: 60, 45, "the window")
        await source.stopCapture(for: sink)
    }

    @Test("On a server that has Xwayland's extension, whatever its monitors are called, no screen is captured")
    func xwaylandByExtension() async throws {
        let server = try await VirtualDisplay()
        let display = try RenamingDisplay(server, asked: "XWAYLAND", real: "XINERAMA")
        #expect(try DisplayInspection(of: server.name).isXwayland == false)
        #expect(try DisplayInspection(of: display.name).isXwayland)
        #expect(try ScreenSource.monitors(display: display.name).isEmpty)
        let source = ScreenSource(target: .screen, display: display.name)
        let error = await #expect(throws: ScreenError.self) { try await source.startCapture() }
        #expect(error?.code == .waylandSession)
    }

    // A title of digits was taken for a window's number.
    @Test("A window is found by a title of digits, unless there is a window of that number")
    func digits() async throws {
        let display = try await VirtualDisplay()
        let talk = try display.makeWindow(area(0, 0, 50, 50), title: "2024", colour: 0x10C030)
        let other = try display.makeWindow(area(100, 0, 50, 50), title: "\(talk)", colour: 0x2030D0)
        for (text, colour) in [("2024", 0x10C030), ("202", 0x10C030), ("\(talk)", 0x10C030), ("\(other)", 0x2030D0)] {
            let (source, sink) = try await capture(.window(text), on: display)
            try await sink.shows(UInt32(colour), at: 20, 20, text)
            await source.stopCapture(for: sink)
        }
    }

    @Test(
        "A target that is not there is an error that says what there is",
        arguments: [
            (ScreenTarget.window("0x123456"), ScreenError.Code.noSuchWindow, "devices --screens"),
            // It named the only window of a display.
            (.window(""), .noSuchWindow, "Slides 1"),
            (.window("Talk"), .noSuchWindow, "Slides 1"), (.window("Slides"), .ambiguousWindow, "\"Slides 2\""),
            (.monitor("HDMI-7"), .noSuchMonitor, "0 ("),
            (.region(area(0, 0, 641, 480)), .regionOutside, "640x480"),
            (.region(area(1, 0, 640, 480)), .regionOutside, "640x480"),
            (.region(area(0, 380, 10, 101)), .regionOutside, "640x480"),
            (.region(area(-1, 0, 10, 10)), .regionOutside, "640x480"),
            (.region(area(0, 0, 1, 10)), .regionOutside, "2x2"),
            (.region(area(.max, .max, .max, .max)), .regionOutside, "640x480"),
        ]
    )
    func absent(target: ScreenTarget, code: ScreenError.Code, words: String) async throws {
        let display = try await VirtualDisplay()
        _ = try display.makeWindow(area(0, 0, 50, 50), title: "Slides 1")
        _ = try display.makeWindow(area(0, 0, 50, 50), title: "Slides 2")
        let source = ScreenSource(target: target, display: display.name)
        let error = await #expect(throws: ScreenError.self) { try await source.startCapture() }
        #expect(error?.code == code)
        #expect(error?.description.contains(words) == true, "\(String(describing: error))")
        let checked = #expect(throws: ScreenError.self) { try ScreenSource.check(target, display: display.name) }
        #expect(checked?.description == error?.description)
    }

    @Test(
        "A display that cannot be reached is an error that says what to do",
        arguments: [
            (":4711", ScreenError.Code.displayUnreachable, "there is no X server"),
            ("nonsense", .invalidDisplay, "no name of a display"),
        ]
    )
    func unreachable(display: String, code: ScreenError.Code, words: String) throws {
        let error = #expect(throws: ScreenError.self) { try ScreenSource.windows(display: display) }
        #expect(error?.code == code)
        #expect(error?.description.contains(words) == true, "\(String(describing: error))")
    }

    @Test("Without a display, a Wayland session is named as the reason")
    func session() throws {
        var session = SessionEnvironment()
        var error = #expect(throws: ScreenError.self) { try session.displayName(given: nil) }
        #expect(error?.code == .noDisplay)
        session.sessionType = "wayland"
        error = #expect(throws: ScreenError.self) { try session.displayName(given: nil) }
        #expect(error?.code == .waylandSession)
        session = SessionEnvironment(waylandDisplay: "wayland-0")
        error = #expect(throws: ScreenError.self) { try session.displayName(given: nil) }
        #expect(error?.code == .waylandSession)
        session.display = ":0"
        #expect(try session.displayName(given: nil) == ":0")
        #expect(try session.displayName(given: ":1") == ":1")
    }
}

/// A region of the screen.
private func area(_ column: Int, _ row: Int, _ width: Int, _ height: Int) -> ScreenRegion {
    ScreenRegion(column: column, row: row, dimensions: Dimensions(width: width, height: height))
}
