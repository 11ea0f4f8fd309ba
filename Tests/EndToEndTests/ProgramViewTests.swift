import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Tiles

/// Shows rooms on a real X server.
///
/// The expected places come from the layout, which has tests of its own.
@Suite("Programs that show a window", .enabled(if: Program.isAllowed), .timeLimit(.minutes(4)))
struct ProgramViewTests {
    let theatre: WindowStage

    init() async throws {
        theatre = try await WindowStage()
    }

    private func places(
        _ sizes: [Dimensions],
        in window: Dimensions = WindowStage.screenSize
    ) -> [PixelArea] {
        TileLayout(of: sizes, in: window, gap: 8).pictures
    }

    private let wide = Dimensions(width: 320, height: 180)

    @Test("One track fills the window, in each size of the window; when it ends, the room is empty")
    func oneTrack() async throws {
        let green = try await ColourPublisher("robot-7", 0x20A040, on: theatre.stage)
        let view = try await theatre.view()
        let window = try await theatre.control(["search", "--sync", "--name", "robot-7/camera - stage"])
            .split(separator: "\n").first.map(String.init)
        let id = try #require(window)
        try await theatre.control(["windowmove", "--sync", id, "0", "0"])
        for size in [Dimensions(width: 800, height: 600), Dimensions(width: 400, height: 640)] {
            try await theatre.control(["windowsize", "--sync", id, "\(size.width)", "\(size.height)"])
            let place = places([wide], in: size)[0]
            try await theatre.shows(0x20A040, in: place, "the track at \(size)")
            // The corner of the picture, and the bar above it.
            let corner = PixelArea(column: place.column, row: place.row, dimensions: Dimensions(width: 40, height: 20))
            let bar = PixelArea(column: 0, row: 0, dimensions: Dimensions(width: size.width, height: place.row))
            try await theatre.shows(0x0E0F12, in: bar, "a bar at \(size)")
            try await eventually("the corner is bright") {
                theatre.picture?.pixel(corner.column + 20, corner.row + 10).map { $0.luma > 200 } == true
            }
        }
        theatre.keep("resized")
        await green.leave()
        let middle = PixelArea(column: 0, row: 0, dimensions: Dimensions(width: 400, height: 120))
        try await theatre.shows(0x0E0F12, in: middle, "an empty room")
        _ = try await theatre.control(["search", "--sync", "--name", "^stage$"])
        #expect(try await end([view], with: SIGTERM) == [.exit(0)])
        await theatre.close()
    }

    @Test("Four tracks are tiles, upright; keys show one alone, hide captions, leave full screen and quit")
    func fourTracks() async throws {
        let tall = Dimensions(width: 180, height: 320)
        let colours: [UInt32] = [0xB03030, 0x20A040, 0x3050C0, 0xA08020]
        var publishers: [ColourPublisher] = []
        let view = try await theatre.view(["--full-screen"])
        for (index, colour) in colours.enumerated() {
            // The third picture lies on its side, and its tag says so.
            let rotation = index == 2 ? VideoRotation.clockwise90 : .none
            let name = ["robot-7", "kitchen camera", "José", "lab-bench-with-a-rather-long-name"][index]
            publishers.append(try await ColourPublisher(name, colour, rotation: rotation, on: theatre.stage))
            // One after the other, so that their order is known.
            let shown = places((0...index).map { $0 == 2 ? tall : wide })
            try await theatre.shows(colour, in: shown[index], "track \(index + 1)")
        }
        let sizes = [wide, wide, tall, wide]
        var shown = places(sizes)
        for (colour, place) in zip(colours, shown) { try await theatre.shows(colour, in: place, "all tracks") }
        // Turned clockwise, the bright corner is at the upper right.
        let turned = shown[2]
        let top = turned.row + turned.dimensions.height / 10
        let left = try #require(theatre.picture?.pixel(turned.column + turned.dimensions.width / 10, top))
        let right = try #require(theatre.picture?.pixel(turned.endColumn - turned.dimensions.width / 10, top))
        #expect(right.luma > 200 && left.luma < 120, "\(left) \(right)")

        try await eventually("captions are there") {
            shown.enumerated().allSatisfy { $0 == 2 || theatre.captionPixels(in: $1) > 40 }
        }
        try await eventually("rates are measured") { theatre.captionPixels(in: shown[0]) > 0 }
        try await Task.sleep(for: .seconds(2))
        theatre.keep("four")
        try await theatre.press("i")
        try await eventually("captions are gone") { shown.allSatisfy { theatre.captionPixels(in: $0) == 0 } }
        try await theatre.press("i")

        let alone = places([wide])[0]
        try await theatre.press("2")
        try await theatre.shows(colours[1], in: alone, "the second alone")
        try await theatre.press("Left")
        try await theatre.shows(colours[0], in: alone, "the one before it")
        try await Task.sleep(for: .seconds(1))
        theatre.keep("alone")
        try await theatre.press("0")
        for (colour, place) in zip(colours, shown) { try await theatre.shows(colour, in: place, "all again") }

        await publishers[1].leave()
        shown = places([wide, tall, wide])
        for (colour, place) in zip([colours[0], colours[2], colours[3]], shown) {
            try await theatre.shows(colour, in: place, "the three that are left")
        }
        theatre.keep("three")
        // Without full screen the window has an edge, outside of which the screen is black.
        try await theatre.press("f")
        try await eventually("the window is smaller") { theatre.picture?.pixel(0, 0)?.luma == 16 }
        try await theatre.press("q")
        #expect(try await view.end() == .exit(0))
        for publisher in publishers { await publisher.leave() }
        await theatre.close()
    }

    // A letter that is not ASCII became "_", and two names one.
    @Test("A snapshot is a PNG of what is shown, in the working directory, with the names that dumps have")
    func snapshot() async throws {
        let publisher = try await ColourPublisher("робот 7", 0xB03030, on: theatre.stage)
        let directory = try TemporaryDirectory()
        let path = Program.path(of: "room-view")
        let command = "cd \(directory.path) && exec \(path) --url \(theatre.stage.url) --room stage --full-screen"
        let view = try theatre.run("sh", ["-c", command])
        try await theatre.shows(0xB03030, in: places([wide])[0], "the track")
        try await theatre.press("s")
        let name = try await eventual("a file") { fileNames(in: directory.path).first { $0.hasSuffix(".png") } }
        #expect(name.hasPrefix("робот 7-camera-20"))
        #expect(try bytes(of: directory(name)).starts(with: [0x89, 0x50, 0x4E, 0x47]))
        try await theatre.press("Escape")
        try await theatre.press("Escape")
        #expect(try await view.end() == .exit(0))
        await publisher.leave()
        await theatre.close()
    }

    // Names told the time to the second, and a picture replaced another one.
    @Test("Two snapshots within a second are two files")
    func twoSnapshots() async throws {
        let publisher = try await ColourPublisher("робот 7", 0xB03030, on: theatre.stage)
        let directory = try TemporaryDirectory()
        let options = "--url \(theatre.stage.url) --room stage --full-screen"
        let command = "cd \(directory.path) && exec \(Program.path(of: "room-view")) \(options)"
        let view = try theatre.run("sh", ["-c", command])
        try await theatre.shows(0xB03030, in: places([wide])[0], "the track")
        try await theatre.control(["key", "s", "key", "s", "key", "s", "key", "q"])
        #expect(try await view.end() == .exit(0))
        #expect(fileNames(in: directory.path).count == 3, "\(view.errors)")
        #expect(view.errors.ranges(of: "Wrote робот 7-camera-20").count == 3)
        await publisher.leave()
        await theatre.close()
    }

    // The program ended before the file was written.
    @Test("A snapshot is written although the window is closed at once")
    func snapshotAtTheEnd() async throws {
        let publisher = try await ColourPublisher(
            "робот 7",
            0xB03030,
            size: Dimensions(width: 1920, height: 1080),
            on: theatre.stage
        )
        let directory = try TemporaryDirectory()
        let options = "--url \(theatre.stage.url) --room stage --full-screen"
        let command = "cd \(directory.path) && exec \(Program.path(of: "room-view")) \(options)"
        let view = try theatre.run("sh", ["-c", command])
        try await theatre.shows(0xB03030, in: places([wide])[0], "the track")
        try await theatre.control(["key", "s", "key", "q"])
        #expect(try await view.end() == .exit(0))
        let name = try #require(fileNames(in: directory.path).first)
        #expect(fileNames(in: directory.path).count == 1 && name.hasSuffix(".png"))
        // A whole PNG file ends with this chunk.
        #expect(try bytes(of: directory(name)).suffix(8).starts(with: Array("IEND".utf8)))
        #expect(view.errors.contains("Wrote \(name)"))
        await publisher.leave()
        await theatre.close()
    }

    @Test(
        "The client starts it, and its options and exit code are passed on",
        arguments: [["view", "--full-screen"], ["subscribe", "--window"]]
    )
    func startedByClient(command: [String]) async throws {
        let shown = try await ColourPublisher("shown", 0x3050C0, on: theatre.stage)
        let other = try await ColourPublisher("other", 0xB03030, on: theatre.stage)
        let options = ["--url", theatre.stage.url, "--room", "stage", "--participant", "shown", "--duration", "60"]
        let client = try theatre.run("room-client", command + options)
        try await theatre.windowOpens(of: client)
        // It is in the middle of the screen, whatever the window's size.
        try await theatre.shows(0x3050C0, in: PixelArea(whole: WindowStage.screenSize), "the participant asked for")
        #expect(try await end([client], with: SIGINT) == [.exit(0)])
        for publisher in [shown, other] { await publisher.leave() }
        await theatre.close()
    }

    /// Compiles the window manager of `Tests/HidingManager`, and starts it.
    private func startHidingManager(in directory: TemporaryDirectory) async throws -> Program {
        let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2)
        let source = tests.joined(separator: "/") + "/HidingManager/manager.c"
        let compiler = try Program("cc", ["-O1", "-o", directory("manager"), source, "-lxcb"])
        guard try await compiler.end() == .exit(0) else { throw TestFailure("no manager: \(compiler.errors)") }
        let manager = try theatre.run(directory("manager"), [])
        try await manager.says("manages\n")
        return manager
    }

    // SDL asked for the keyboard, which a hidden window does not get, and Xlib ended the program.
    @Test("A window that is hidden the moment it is shown does not end the program, and shows pictures later")
    func hiddenAtOnce() async throws {
        let directory = try TemporaryDirectory()
        let manager = try await startHidingManager(in: directory)
        let green = try await ColourPublisher("robot-7", 0x20A040, on: theatre.stage)
        let view = try theatre.run("room-view", ["--url", theatre.stage.url, "--room", "stage"])
        let window = try await eventual("the window is hidden") { manager.lines.count == 2 ? manager.lines.last : nil }
        try await theatre.control(["search", "--sync", "--name", "robot-7/camera - stage"])
        try await theatre.control(["windowmap", "--sync", window])
        try await theatre.shows(0x20A040, in: PixelArea(whole: WindowStage.screenSize), "the track")
        #expect(try await end([view], with: SIGTERM) == [.exit(0)], "\(view.errors)")
        #expect(try await end([manager], with: SIGTERM) == [.signal(SIGTERM)])
        await green.leave()
        await theatre.close()
    }

    @Test("A window that shows nothing new costs next to no CPU time")
    func idle() async throws {
        let view = try await theatre.view()
        var spent = 0.0
        // A window that is there may still be busy with its beginning.
        try await eventually("it rests: \(spent) s in 4 s") {
            let before = try cpuSeconds(of: view)
            try await Task.sleep(for: .seconds(4))
            spent = try cpuSeconds(of: view) - before
            return spent < 0.4
        }
        #expect(try await end([view], with: SIGINT) == [.exit(0)])
        await theatre.close()
    }

    private func cpuSeconds(of program: Program) throws -> Double {
        // After the name in parentheses: state, 10 numbers, then user and system time in hundredths of a second.
        let status = try text(of: "/proc/\(program.identifier)/stat")
        let fields = status.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
            throw TestFailure("no times in \(status)")
        }
        return (user + system) / 100
    }

    @Test("A display that goes away is told, with exit code 69")
    func lostDisplay() async throws {
        let view = try await theatre.view()
        theatre.screen.program.send(SIGKILL)
        #expect(try await view.end() == .exit(69))
        #expect(view.errors.contains("room-view: The display has gone"))
    }
}
