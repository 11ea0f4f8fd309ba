import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

/// A camera for whole programs, on any machine: `Tests/PreloadedCamera` answers their V4L2 calls.
private struct PreloadedCamera {
    /// The file that stands for the camera's node.
    let path: String
    private let library: String
    private let format: String

    /// Builds a camera in `directory` that has one size and rate.
    init(in directory: TemporaryDirectory, format: String = "640x480@30") async throws {
        (path, library) = (directory("camera"), directory("camera.so"))
        self.format = format
        try store([], at: path)
        let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2)
        let source = tests.joined(separator: "/") + "/PreloadedCamera/camera.c"
        let compiler = try Program("cc", ["-shared", "-fPIC", "-O1", "-o", library, source])
        guard try await compiler.end() == .exit(0) else { throw TestFailure("no camera: \(compiler.errors)") }
    }

    /// Starts `room-client devices` for the camera, with these options.
    func list(_ options: [String]) throws -> Program {
        let settings = ["LD_PRELOAD=\(library)", "TEST_CAMERA=\(format)"]
        let arguments = ["devices", "--device", path, "--json"] + options
        return try Program("env", settings + [Program.path(of: "room-client")] + arguments)
    }

    /// Starts `room-client connect`, which publishes the camera, and obeys what comes through the pipe `commands`.
    func publish(to stage: Stage, _ options: [String], commands: String? = nil) throws -> Program {
        // On a machine that is busy with other tests, the size is not what the CPU takes.
        let isSteady = ["--degradation", "resolution"]
        let room = ["connect", "--url", stage.url, "--room", "stage"]
        let arguments = room + ["--device", path, "--json"] + isSteady + options
        let settings = ["LD_PRELOAD=\(library)", "TEST_CAMERA=\(format)"]
        let command = ["env"] + settings + [Program.path(of: "room-client")] + arguments
        guard let commands else { return try Program(command[0], Array(command.dropFirst())) }
        // The shell opens the pipe for writing too, so that there is no end of the input.
        return try Program("sh", ["-c", "exec \"$@\" <>\"$0\"", commands] + command + ["--commands"])
    }
}

/// Keeps the last picture.
private final class LastPicture: VideoRenderer {
    private let last = Monitor<VideoFrame?>(nil)

    func render(_ frame: VideoFrame) {
        last.withLock { $0 = frame }
    }

    /// Waits for an upright picture of `size` whose white quarter is in the corner `corner`.
    func shows(_ size: Dimensions, white corner: Corner) async throws {
        try await shows(size, white: [corner])
    }

    /// Waits for an upright picture of `size` that is white in these corners alone.
    func shows(_ size: Dimensions, white expected: Set<Corner>) async throws {
        do {
            try await eventually { self.size == size && self.corners == expected }
        } catch {
            throw TestFailure("\(error): \(size), \(expected) instead of \(self.size, default: "-"), \(corners)")
        }
    }

    private var size: Dimensions? { last.withLock { $0 }.flatMap { $0.isUpright ? $0.dimensions : nil } }

    private var corners: Set<Corner> {
        guard let frame = last.withLock({ $0 }) else { return [] }
        let isWhite = { (column: Int, row: Int) in
            frame.buffer.withPlanes { luma, _, _ in luma[row * frame.buffer.lumaStride + column] > 160 }
        }
        let (right, bottom) = (frame.dimensions.width - 8, frame.dimensions.height - 8)
        return Set(Corner.allCases.filter { isWhite($0.isLeft ? 7 : right, $0.isTop ? 7 : bottom) })
    }
}

/// A corner of a picture.
private enum Corner: CaseIterable {
    case topLeft, topRight, bottomLeft, bottomRight

    var isLeft: Bool { self == .topLeft || self == .bottomLeft }
    var isTop: Bool { self == .topLeft || self == .topRight }
}

@Suite("A camera that connect publishes", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramCameraTests {
    private let directory: TemporaryDirectory
    private let stage: Stage

    init() throws {
        directory = try TemporaryDirectory()
        stage = try Stage()
    }

    /// Shows the one track of the room.
    private func show(_ viewer: Member) async throws -> LastPicture {
        let picture = LastPicture()
        try await viewer.subscribedTrack().addRenderer(picture)
        return picture
    }

    /// What a sensor of a device says that is held with `edge` up.
    private func hold(_ edge: String, _ sensor: String, isFile: Bool) throws {
        if isFile { return try store("\(edge)\n".utf8, at: sensor) }
        mkdir(sensor, 0o700)
        let (x, y) = edge == "normal" ? (0, -1000) : (edge == "left-up" ? (1000, 0) : (0, 1000))
        for (axis, value) in [("x", x), ("y", y), ("z", 100)] {
            try store("\(value)\n".utf8, at: "\(sensor)/in_accel_\(axis)_raw")
        }
    }

    @Test("The camera's pictures stay upright as a file, or an accelerometer, says", arguments: [true, false])
    func orientationSensor(isFile: Bool) async throws {
        let camera = try await PreloadedCamera(in: directory)
        let viewer = try await stage.join("viewer")
        let sensor = directory("sensor")
        try hold("normal", sensor, isFile: isFile)
        let publisher = try camera.publish(to: stage, ["--orientation-sensor", sensor])
        let picture = try await show(viewer)
        let size = Dimensions(width: 640, height: 480)
        try await picture.shows(size, white: .topLeft)
        try hold("left-up", sensor, isFile: isFile)
        let upright = Dimensions(width: 480, height: 640)
        try await picture.shows(upright, white: .topRight)
        try hold("bottom-up", sensor, isFile: isFile)
        try await picture.shows(size, white: .bottomRight)
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        let changes = try publisher.events().filter { $0.string("event") == "trackDimensionsChanged" }
        #expect(changes.map { $0.number("width") } == [480, 640] && changes.map { $0.number("height") } == [640, 480])
        await viewer.room.disconnect()
    }

    @Test("A file that cannot say how the camera is held is refused before anything is joined")
    func noSensor() async throws {
        let camera = try await PreloadedCamera(in: directory)
        try hold("sideways", directory("sensor"), isFile: true)
        for (path, status) in [(directory("sensor"), Int32(69)), (directory("none"), 66)] {
            let publisher = try camera.publish(to: stage, ["--orientation-sensor", path])
            #expect(try await publisher.end() == .exit(status))
            #expect(try publisher.events().map { $0.string("event") } == ["failure"])
            #expect(publisher.errors.contains("Cannot read the orientation from \(path): "), "\(publisher.errors)")
        }
    }

    @Test("The pictures are cropped, turned and mirrored, whoever turns them", arguments: ["applied", "tagged"])
    func turned(orientation: String) async throws {
        let camera = try await PreloadedCamera(in: directory)
        let viewer = try await stage.join("viewer")
        let options = ["--crop", "320x200", "--rotate", "90", "--orientation", orientation]
        let size = Dimensions(width: 200, height: 320)
        for (mirroring, corner) in [([], Corner.topRight), (["--mirror"], .topLeft)] {
            let publisher = try camera.publish(to: stage, options + mirroring + ["--track-name", "\(corner)"])
            let picture = LastPicture()
            try await viewer.subscribedTrack("\(corner)").addRenderer(picture)
            try await picture.shows(size, white: corner)
            #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
            // A tag turns nothing before encoding.
            let encoded = try publisher.events().last?.objects("layers").last?.number("width")
            #expect(encoded == (orientation == "tagged" ? 320 : 200))
        }
        await viewer.room.disconnect()
    }

    @Test("Controls are set without a room, and what the driver made of them is listed")
    func controlsWithoutRoom() async throws {
        let camera = try await PreloadedCamera(in: directory)
        for (value, set) in [("0x80", 128.0), ("200", 200), ("default", 16)] {
            let program = try camera.list(["--control", "brightness=\(value)"])
            #expect(try await program.end() == .exit(0), "\(program.errors)")
            let events = try program.events()
            #expect(events.map { $0.string("event") } == ["device", "summary"])
            let controls = events.first?.objects("controls") ?? []
            #expect(controls.map { $0.string("name") } == ["brightness"])
            #expect(controls.first?.number("value") == set, "\(value)")
        }
        let refused = try camera.list(["--control", "brightness=300"])
        #expect(try await refused.end() == .exit(64))
        #expect(refused.errors.contains("16 to 235, not 300"), "\(refused.errors)")
    }

    @Test("Commands turn the pictures, and set the camera's controls, while they are published")
    func commands() async throws {
        let camera = try await PreloadedCamera(in: directory)
        let viewer = try await stage.join("viewer")
        let pipe = directory("commands")
        try #require(mkfifo(pipe, 0o600) == 0)
        let publisher = try camera.publish(to: stage, [], commands: pipe)
        let picture = try await show(viewer)
        try await picture.shows(Dimensions(width: 640, height: 480), white: .topLeft)
        try store("rotate 90\n".utf8, at: pipe)
        let turned = Dimensions(width: 480, height: 640)
        try await picture.shows(turned, white: .topRight)
        try store("control brightness=200\n".utf8, at: pipe)
        try await picture.shows(turned, white: Set(Corner.allCases))
        try store("rotate 0\ncontrol brightness=16\n".utf8, at: pipe)
        try await picture.shows(Dimensions(width: 640, height: 480), white: .topLeft)
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        let answers = try publisher.events().filter { $0.string("event") == "command" }
        let lines = ["rotate 90", "control brightness=200", "rotate 0", "control brightness=16"]
        #expect(answers.map { $0.string("command") } == lines)
        #expect(answers.allSatisfy { $0.fields["error"] == .null })
        await viewer.room.disconnect()
    }

    @Test("Commands take back what the options crop, turn and mirror", arguments: ["applied", "tagged"])
    func takenBack(orientation: String) async throws {
        let camera = try await PreloadedCamera(in: directory)
        let viewer = try await stage.join("viewer")
        let pipe = directory("commands")
        try #require(mkfifo(pipe, 0o600) == 0)
        let options = ["--crop", "320x200", "--rotate", "90", "--mirror", "--orientation", orientation]
        let publisher = try camera.publish(to: stage, options, commands: pipe)
        let picture = try await show(viewer)
        try await picture.shows(Dimensions(width: 200, height: 320), white: .topLeft)
        for (line, size, corner) in [
            ("mirror off", Dimensions(width: 200, height: 320), Corner.topRight),
            ("crop off", Dimensions(width: 480, height: 640), .topRight),
            ("rotate 0", Dimensions(width: 640, height: 480), .topLeft),
        ] {
            try store("\(line)\n".utf8, at: pipe)
            try await picture.shows(size, white: corner)
        }
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        await viewer.room.disconnect()
    }

    @Test("A warning about the camera is a JSON object, and a line of standard error")
    func warning() async throws {
        let camera = try await PreloadedCamera(in: directory, format: "640x480@60")
        let publisher = try camera.publish(to: stage, [])
        try await publisher.says("\"published\"")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        let warnings = try publisher.events().filter { $0.string("event") == "warning" }
        #expect(warnings.map { $0.string("code") } == ["formatLimited"])
        let sentence = try #require(warnings.first?.string("error"))
        #expect(sentence.contains("640x480 60 fps") && sentence.contains("at 30 frames per second are delivered"))
        #expect(warnings.first?.string("track") == "camera")
        #expect(publisher.errors.contains("\(sentence).\n"), "\(publisher.errors)")
        // It was the camera's rate, of which every other frame is left out.
        let published = try publisher.events().filter { $0.string("event") == "published" }
        #expect(published.map { $0.number("frameRate") } == [30] && published.map { $0.number("width") } == [640])
    }
}
