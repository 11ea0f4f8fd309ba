import Foundation
import MediaCore
import TestTools
import Testing

@testable import V4L2Capture

@Suite("How a camera is held")
struct OrientationTrackerTests {
    private func write(_ text: String, to path: String) throws {
        try (text + "\n").write(toFile: path, atomically: false, encoding: .utf8)
    }

    @Test("Static and manual trackers answer what they were told")
    func told() {
        #expect(StaticOrientationTracker(.half).rotation == .half)
        let tracker = ManualOrientationTracker()
        #expect(tracker.rotation == .none)
        tracker.rotation = .clockwise270
        #expect(tracker.rotation == .clockwise270)
    }

    @Test(
        "A line stands for a turn, or for nothing",
        arguments: [
            ("0", 0), ("90", 90), ("180", 180), (" 270 ", 270), ("normal", 0), ("left-up", 90), ("bottom-up", 180),
            ("right-up", 270), ("45", nil), ("-90", nil), ("", nil), ("upright", nil), ("90 90", nil),
        ] as [(String, Int?)]
    )
    func lines(line: String, degrees: Int?) {
        #expect(FileOrientationTracker.rotation(named: line)?.rawValue == degrees)
    }

    @Test(
        "The edge that is up decides; where two are, or none, the last turn stays",
        arguments: [
            (0, -10, 0, 0), (0, 10, 0, 180), (10, 0, 0, 90), (-10, 0, 0, 270), (0, 0, 10, 270), (7, -7, 0, 270),
            (2, -9, 3, 0), (0, 0, 0, 270),
        ] as [(Double, Double, Double, Int)]
    )
    func gravity(x: Double, y: Double, z: Double, degrees: Int) {
        #expect(Gravity(x: x, y: y, z: z).rotation(after: .clockwise270).rawValue == degrees)
    }

    @Test("A file is followed; while it holds nonsense, the last turn stays; what says nothing is refused")
    func file() async throws {
        let directory = try TemporaryDirectory()
        let path = directory("turn")
        #expect(throws: CameraError.self) { try FileOrientationTracker(path: path) }
        try write("sideways", to: path)
        let error = #expect(throws: CameraError.self) { try FileOrientationTracker(path: path) }
        #expect(error?.code == .noOrientation)
        try write("90", to: path)
        let tracker = try FileOrientationTracker(path: path)
        #expect(tracker.rotation == .clockwise90)
        try write("bottom-up", to: path)
        try await eventually("the turn is followed") { tracker.rotation == .half }
        try write("nonsense", to: path)
        try await Task.sleep(for: .milliseconds(300))
        #expect(tracker.rotation == .half)
    }

    @Test("A pipe without a writer is refused, and does not hold up anybody")
    func pipe() throws {
        let directory = try TemporaryDirectory()
        try #require(mkfifo(directory("pipe"), 0o600) == 0)
        #expect(throws: CameraError.self) { try FileOrientationTracker(path: directory("pipe")) }
    }

    @Test("An accelerometer is followed along the device's axes")
    func accelerometer() async throws {
        let directory = try TemporaryDirectory()
        func hold(_ x: Int, _ y: Int, _ z: Int) throws {
            for (axis, value) in [("x", x), ("y", y), ("z", z)] {
                try write("\(value)", to: directory("in_accel_\(axis)_raw"))
            }
        }
        try hold(0, -1024, 30)
        let tracker = try FileOrientationTracker(path: directory.path)
        #expect(tracker.rotation == .none)
        try hold(1000, 100, -20)
        try await eventually("it is turned") { tracker.rotation == .clockwise90 }
        // The sensor is mounted a quarter turn off.
        try write("0, 1, 0; -1, 0, 0; 0, 0, 1", to: directory("in_accel_mount_matrix"))
        #expect(try FileOrientationTracker(path: directory.path).rotation == .none)
    }
}
