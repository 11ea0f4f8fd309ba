import CXCB
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@testable import ScreenCapture

/// What is shown of a window that others cover.
///
/// The windows have no background, and nobody paints them but the test, so that the server leaves in them what was on
/// the screen.
@Suite("A covered window", .serialized, .timeLimit(.minutes(2)))
struct CoveredWindowTests {
    private let red: UInt32 = 0xE02010
    private let green: UInt32 = 0x10C030
    private let blue: UInt32 = 0x2030D0
    private let black: UInt32 = 0

    /// Notes whether a frame shows a colour that must not be seen.
    private final class Censor: VideoSink {
        private let forbidden: [Pixel]
        private let seen = Monitor<[Dimensions]>([])
        let sourceRequirements = VideoFormatRequest()

        init(_ colours: UInt32...) { forbidden = colours.map { Pixel($0) } }

        /// The sizes of the frames that showed one.
        var offences: [Dimensions] { seen.withLock { $0 } }

        func onVideoFormatRequest(_ request: VideoFormatRequest) {}

        func onVideoFrame(_ frame: VideoFrame) {
            let size = frame.dimensions
            for row in stride(from: 0, to: size.height, by: 4) {
                for column in stride(from: 0, to: size.width, by: 4) {
                    let pixel = frame.pixel(column, row)
                    guard let pixel, forbidden.contains(where: { pixel.isNear($0) }) else { continue }
                    return seen.withLock { $0.append(size) }
                }
            }
        }
    }

    /// Starts a source of the window "Slides" for a sink, and for a censor of red and green.
    private func watch(_ display: VirtualDisplay) async throws -> (ScreenSource, LastFrame, Censor) {
        let source = ScreenSource(
            target: .window("Slides"),
            display: display.name,
            showsCursor: false,
            request: VideoFormatRequest(frameRate: FrameRate(60))
        )
        let (sink, censor) = (LastFrame(), Censor(red, green))
        source.sinks.add(censor)
        try await source.startCapture(for: sink)
        return (source, sink, censor)
    }

    /// Waits until the picture stands still.
    private func rests(_ source: ScreenSource) async throws {
        let before = source.captureStatistics.framesRepeated
        try await eventually("the picture stands still") { source.captureStatistics.framesRepeated >= before + 2 }
    }

    // It was shown after 250 ms, whatever was in it.
    @Test(
        "What was covered at the start is black until the program paints it, and the rest is shown",
        arguments: [0, 3],
        [false, true]
    )
    func atTheStart(border: Int, isNested: Bool) async throws {
        let display = try await VirtualDisplay()
        // A window manager puts a program's window into a frame, and the cover lies above the frame.
        let frame = try isNested ? display.makeWindow(area(80, 40, 300, 200), title: "Frame", colour: 0x808080) : nil
        let place = isNested ? area(20, 20, 200, 100) : area(100, 60, 200, 100)
        let window = try display.makeWindow(place, title: "Slides", colour: nil, border: border, in: frame)
        if isNested { try display.mark(window) }
        try display.fill(window, area(0, 0, 200, 100), blue)
        let cover = try display.makeWindow(area(150, 80, 60, 40), title: "Cover", colour: red)
        let (source, sink, censor) = try await watch(display)
        try await sink.shows(blue, at: 20, 20, "what was not covered")
        try await sink.shows(blue, at: 190, 90, "what was not covered")
        try await sink.shows(black, at: 70, 40, "black for what was covered")
        // The server reports damage for what it uncovers and moves, as if the program had painted it.
        try display.close(cover)
        try display.move(frame ?? window, column: 10, row: 10)
        try display.fill(window, area(190, 90, 2, 2), 0xFFFFFF)
        try await sink.shows(0xFFFFFF, at: 191, 91, "what was painted elsewhere")
        try await rests(source)
        try await sink.shows(black, at: 70, 40, "black while nobody paints it")
        try display.fill(window, area(40, 10, 100, 60), blue)
        try await sink.shows(blue, at: 70, 40, "what the program has painted")
        #expect(censor.offences.isEmpty)
        await source.stopCapture(for: sink)
    }

    @Test("A background is shown at once under what covers the window, and a window inside it is black there")
    func background() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 200, 100), title: "Slides", colour: blue)
        let inner = try display.makeWindow(area(100, 0, 100, 100), colour: nil, in: window)
        try display.fill(inner, area(0, 0, 100, 100), 0xFFFFFF)
        _ = try display.makeWindow(area(150, 80, 100, 40), title: "Cover", colour: red)
        let (source, sink, censor) = try await watch(display)
        try await sink.shows(blue, at: 20, 40, "the background")
        try await sink.shows(blue, at: 80, 40, "the background under the cover")
        try await sink.shows(black, at: 120, 40, "black for what nobody has painted")
        try await sink.shows(0xFFFFFF, at: 180, 40, "the window inside")
        try await rests(source)
        #expect(censor.offences.isEmpty)
        await source.stopCapture(for: sink)
    }

    @Test(
        "What a window gains when it grows is black until the program paints it, be it covered or not",
        arguments: [false, true]
    )
    func growing(keepsContent: Bool) async throws {
        let display = try await VirtualDisplay()
        _ = try display.makeWindow(area(0, 0, 640, 480), title: "Neighbour", colour: green)
        let slides = area(100, 60, 100, 80)
        let window = try display.makeWindow(slides, title: "Slides", colour: nil, keepsContent: keepsContent)
        try display.fill(window, area(0, 0, 100, 80), blue)
        let cover = try display.makeWindow(area(300, 60, 60, 60), title: "Cover", colour: red)
        let (source, sink, censor) = try await watch(display)
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.resize(window, Dimensions(width: 300, height: 200))
        try await eventually("the larger window") { sink.now.frame?.dimensions == Dimensions(width: 300, height: 200) }
        try await sink.shows(keepsContent ? blue : black, at: 20, 20, "what the server has kept of it")
        try await sink.shows(black, at: 150, 150, "black for what was not covered")
        try await sink.shows(black, at: 230, 30, "black for what was covered")
        try display.close(cover)
        try display.move(window, column: 10, row: 10)
        try display.fill(window, area(50, 50, 200, 100), 0xFFFFFF)
        try await sink.shows(0xFFFFFF, at: 150, 120, "what the program has painted")
        try await rests(source)
        try await sink.shows(black, at: 230, 30, "black for what it has not")
        #expect(censor.offences.isEmpty)
        try display.fill(window, area(0, 0, 300, 200), blue)
        try await sink.shows(blue, at: 230, 30, "the whole window")
        await source.stopCapture(for: sink)
    }

    @Test("A window that is shown again while it is covered is black until the program paints it")
    func shownAgain() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 200, 100), title: "Slides", colour: nil)
        try display.fill(window, area(0, 0, 200, 100), blue)
        let (source, sink, censor) = try await watch(display)
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.hide(window)
        try await eventually("an interruption") { source.captureStatistics.interruptions == 1 }
        _ = try display.makeWindow(area(0, 0, 250, 480), title: "Neighbour", colour: green)
        _ = try display.makeWindow(area(200, 0, 250, 480), title: "Cover", colour: red)
        try display.show(window)
        try await sink.shows(black, at: 20, 20, "black")
        try await sink.shows(black, at: 180, 80, "black")
        try display.fill(window, area(0, 0, 200, 100), blue)
        try await sink.shows(blue, at: 180, 80, "what the program has painted")
        #expect(censor.offences.isEmpty)
        await source.stopCapture(for: sink)
    }

    // The report of the drawing was taken for one of a move, and the window stayed black.
    @Test("A window that is enlarged, raised and painted as a whole between two looks is shown")
    func raisedAndPainted() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 100, 80), title: "Slides", colour: nil)
        try display.fill(window, area(0, 0, 100, 80), blue)
        _ = try display.makeWindow(area(400, 60, 100, 60), title: "Other", colour: red)
        let source = ScreenSource(
            target: .window("Slides"),
            display: display.name,
            showsCursor: false,
            request: VideoFormatRequest(frameRate: FrameRate(2))
        )
        let sink = LastFrame()
        try await source.startCapture(for: sink)
        try await sink.shows(blue, at: 20, 20, "the window")
        try display.resize(window, Dimensions(width: 200, height: 100))
        try display.raise(window)
        try display.fill(window, area(0, 0, 200, 100), 0xFFFFFF)
        try await eventually("the larger window") { sink.now.frame?.dimensions == Dimensions(width: 200, height: 100) }
        try await sink.shows(0xFFFFFF, at: 150, 80, "what was painted")
        await source.stopCapture(for: sink)
    }

    @Test("What the program paints before the source looks at the larger window is shown, and only that is shown")
    func paintedInTime() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(100, 60, 100, 80), title: "Slides", colour: nil)
        try display.fill(window, area(0, 0, 100, 80), blue)
        _ = try display.makeWindow(area(150, 60, 100, 60), title: "Cover", colour: red)
        let source = ScreenSource(
            target: .window("Slides"),
            display: display.name,
            showsCursor: false,
            request: VideoFormatRequest(frameRate: FrameRate(2))
        )
        let (sink, censor) = (LastFrame(), Censor(red))
        source.sinks.add(censor)
        try await source.startCapture(for: sink)
        try await sink.shows(blue, at: 20, 20, "the window")
        // All of this lies between two looks.
        try display.resize(window, Dimensions(width: 200, height: 100))
        try display.move(window, column: 90, row: 50)
        try display.fill(window, area(0, 0, 120, 100), 0xFFFFFF)
        try display.move(window, column: 80, row: 40)
        try await sink.shows(0xFFFFFF, at: 60, 80, "what was painted")
        try await sink.shows(0xFFFFFF, at: 100, 20, "what was painted under the cover")
        try await sink.shows(black, at: 150, 20, "black for what was not, under the cover")
        try await sink.shows(black, at: 190, 90, "black for what was not")
        try await rests(source)
        #expect(censor.offences.isEmpty)
        await source.stopCapture(for: sink)
    }

    @Test("A window that was only moved keeps its picture, and the server is not grabbed for it")
    func movedOnly() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 640, height: 480))
        let window = try display.makeWindow(area(10, 20, 200, 100), title: "Slides", colour: blue)
        let connection = try XConnection(display: display.name)
        let scene = try CapturedScene(.window("Slides"), "the window", connection)
        let first = try scene.locateFirst()
        /// Locates the window once the server has told of a change.
        func next() async throws -> SceneLayout? {
            try await eventually("a change is told") { try scene.takeEvents().contains(.layoutChanged) }
            return try scene.locate()
        }
        try display.move(window, column: 60, row: 50)
        let moved = try #require(try await next())
        #expect(moved.drawable == first.drawable && moved.looks(like: first) && !moved.isNew && moved.isPainted)
        #expect(moved.onScreen == PixelPlace(column: 60, row: 50))
        try display.resize(window, Dimensions(width: 220, height: 100))
        let resized = try #require(try await next())
        #expect(resized.drawable != first.drawable && resized.dimensions == Dimensions(width: 220, height: 100))
        try display.hide(window)
        #expect(try await next() == nil)
        try display.show(window)
        let shown = try #require(try await next())
        #expect(shown.drawable != resized.drawable && shown.isNew)
    }
}
