import Foundation
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Threading

/// A room, and a display on which `room-view` shows it.
final class WindowStage {
    static let screenSize = Dimensions(width: 1280, height: 720)

    let stage: Stage
    let screen: XServer
    private let source: ScreenSource
    private let seen = LastFrame()

    init() async throws {
        stage = try Stage()
        screen = try await XServer(Self.screenSize)
        source = ScreenSource(
            display: screen.display,
            showsCursor: false,
            request: VideoFormatRequest(frameRate: FrameRate(30))
        )
        try await source.startCapture(for: seen)
    }

    /// What the screen shows now.
    var picture: VideoFrame? { seen.now.frame }

    /// Runs a program on the display.
    func run(_ name: String, _ arguments: [String]) throws -> Program {
        let environment = ["-u", "WAYLAND_DISPLAY", "DISPLAY=\(screen.display)"]
        return try Program("env", environment + [Program.path(of: name)] + arguments)
    }

    /// Starts `room-view`, and waits until its window is there.
    func view(_ arguments: [String] = []) async throws -> Program {
        let program = try run("room-view", ["--url", stage.url, "--room", "stage"] + arguments)
        try await windowOpens(of: program)
        return program
    }

    /// Waits for the window of a program.
    func windowOpens(of program: Program) async throws {
        _ = try await control(["search", "--sync", "--onlyvisible", "--class", "room-view"])
        guard program.isRunning else { throw TestFailure("room-view ended: \(program.errors)") }
    }

    /// Presses a key.
    func press(_ key: String) async throws {
        _ = try await control(["key", key])
    }

    /// Runs a command of xdotool; returns what it says.
    @discardableResult
    func control(_ arguments: [String]) async throws -> String {
        let tool = try run("xdotool", arguments)
        guard try await tool.end() == .exit(0) else {
            throw TestFailure("xdotool \(arguments) failed; make deps installs it: \(tool.errors)")
        }
        return tool.text
    }

    /// Waits until the screen shows about `colour` in the middle of `area`.
    func shows(_ colour: UInt32, in area: PixelArea, _ what: String) async throws {
        let (column, row) = (area.column + area.dimensions.width / 2, area.row + area.dimensions.height / 2)
        var pixel: Pixel?
        do {
            try await eventually("the screen shows \(what)") {
                pixel = picture?.pixel(column, row)
                // Two conversions and a lossy codec lie between them.
                return pixel?.isNear(Pixel(colour), within: 6) == true
            }
        } catch {
            keep("failure")
            throw TestFailure("\(error) at \(column), \(row): \(String(describing: pixel)), not \(Pixel(colour))")
        }
    }

    /// The bright pixels in the lower fifth of an area, where its caption is.
    func captionPixels(in area: PixelArea) -> Int {
        guard let picture else { return 0 }
        let rows = (area.endRow - area.dimensions.height / 5)..<area.endRow
        return rows.reduce(0) { sum, row in
            sum + (area.column..<area.endColumn).count { (picture.pixel($0, row)?.luma ?? 0) > 215 }
        }
    }

    /// Writes the screen's picture for people to look at, if `ROOM_TEST_PICTURES` names a directory.
    func keep(_ name: String) {
        guard let directory = ProcessInfo.processInfo.environment["ROOM_TEST_PICTURES"], let picture else { return }
        try? PNGSnapshotRenderer(path: "\(directory)/view-\(name).png").render(picture)
    }

    func close() async {
        await source.stopCapture(for: seen)
    }
}

/// A participant who publishes pictures of one colour.
final class ColourPublisher: Sendable {
    let member: Member
    let track: LocalVideoTrack
    private let writer: Task<Void, any Error>

    /// Publishes pictures of `size`, which `rotation` makes upright.
    init(
        _ identity: String,
        _ colour: UInt32,
        size: Dimensions = Dimensions(width: 320, height: 180),
        rotation: VideoRotation = .none,
        on stage: Stage
    ) async throws {
        member = try await stage.join(identity) { $0.isAutomaticSubscriptionEnabled = false }
        let track = LocalVideoTrack(writtenAs: "camera")
        self.track = track
        let buffer = Self.plain(Pixel(colour), size)
        writer = Task {
            while !Task.isCancelled {
                _ = track.write(VideoFrame(buffer: buffer, timestamp: MonotonicClock.now, rotation: rotation))
                try await Task.sleep(for: .milliseconds(40))
            }
        }
        var options = VideoPublishOptions()
        options.orientation = .tagged
        // The tests look at sizes, and a busy machine must not make the pictures smaller.
        options.degradationPreference = .maintainResolution
        try await member.room.localParticipant.publish(track, options: options)
    }

    /// A picture of one colour, with a bright corner at the upper left.
    private static func plain(_ pixel: Pixel, _ size: Dimensions) -> VideoBuffer {
        let buffer = VideoBuffer(dimensions: size)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: UInt8(pixel.luma))
            chromaU.update(repeating: UInt8(pixel.u))
            chromaV.update(repeating: UInt8(pixel.v))
            for row in 0..<size.height / 4 {
                for column in 0..<size.width / 4 { luma[row * buffer.lumaStride + column] = 235 }
            }
        }
        return buffer
    }

    /// Leaves the room.
    func leave() async {
        writer.cancel()
        await member.room.disconnect()
    }
}
