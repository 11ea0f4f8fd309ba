import Glibc
public import MediaCore
import Threading

/// Reads from a file, or from an accelerometer, how a camera is held.
///
/// A file holds the clockwise turn that makes the pictures upright, `0`, `90`, `180` or `270`, or the edge of the
/// device that is up: `normal`, `right-up`, `bottom-up` or `left-up`, as iio-sensor-proxy says it. An accelerometer is
/// the folder of its driver, such as `/sys/bus/iio/devices/iio:device0`; its mount matrix is taken into account.
///
/// It is read at most four times a second, on the capture thread. While it cannot be read, the last turn stays.
public final class FileOrientationTracker: OrientationTracker {
    private struct State: Sendable {
        var rotation: VideoRotation
        var due: MonotonicInstant
    }

    /// The path of the file or the folder.
    public let path: String
    private let state: Monitor<State>
    private let sensor: Accelerometer?

    /// How often it is read: a device that is turned shows a crooked picture for no longer than this.
    private static let interval = Duration.milliseconds(250)

    /// Creates a tracker that follows the file, or the accelerometer, at `path`.
    ///
    /// - Throws: `noOrientation` if it cannot be read, or holds something else.
    public init(path: String) throws(CameraError) {
        self.path = path
        sensor = Accelerometer(folder: path)
        guard let rotation = Self.read(path, sensor, after: .none) else {
            throw CameraError(
                .noOrientation,
                device: path,
                attempt: "read the orientation from",
                status: unsafe access(path, F_OK) == 0 ? nil : ENOENT,
                explanation: "it takes a file with 0, 90, 180, 270, normal, right-up, bottom-up or left-up, or the "
                    + "folder of an accelerometer such as /sys/bus/iio/devices/iio:device0"
            )
        }
        state = Monitor(State(rotation: rotation, due: MonotonicClock.now + Self.interval))
    }

    /// The turn as it was last read.
    public var rotation: VideoRotation {
        let now = MonotonicClock.now
        let (former, isDue) = state.withLock { state in
            guard now >= state.due else { return (state.rotation, false) }
            state.due = now + Self.interval
            return (state.rotation, true)
        }
        guard isDue, let rotation = Self.read(path, sensor, after: former) else { return former }
        state.withLock { $0.rotation = rotation }
        return rotation
    }

    private static func read(_ path: String, _ sensor: Accelerometer?, after former: VideoRotation) -> VideoRotation? {
        if let sensor { return sensor.gravity?.rotation(after: former) }
        return firstLine(of: path).flatMap { rotation(named: $0) }
    }

    /// The turn that a line of text stands for.
    static func rotation(named line: String) -> VideoRotation? {
        let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard words.count == 1, let word = words.first else { return nil }
        switch word {
        case "normal": return VideoRotation.none
        case "right-up": return .clockwise270
        case "bottom-up": return .half
        case "left-up": return .clockwise90
        default: return Int(word).flatMap { VideoRotation(rawValue: $0) }
        }
    }
}

/// An accelerometer of Linux's industrial I/O subsystem (Documentation/ABI/testing/sysfs-bus-iio).
struct Accelerometer: Sendable {
    private let folder: String
    /// From the sensor's axes to those of the device, row by row.
    private let mountMatrix: [Double]

    /// The accelerometer whose driver's folder is `folder`; `nil` if that is none.
    init?(folder: String) {
        guard firstLine(of: "\(folder)/in_accel_x_raw") != nil else { return nil }
        self.folder = folder
        let names = ["in_accel_mount_matrix", "in_mount_matrix", "mount_matrix"]
        let text = names.lazy.compactMap { firstLine(of: "\(folder)/\($0)") }.first ?? ""
        let numbers = text.split { $0 == "," || $0 == ";" || $0 == " " }.compactMap { Double($0) }
        mountMatrix = numbers.count == 9 ? numbers : [1, 0, 0, 0, 1, 0, 0, 0, 1]
    }

    /// Gravity along the axes of the device; `nil` if it cannot be read.
    var gravity: Gravity? {
        guard let x = axis("x"), let y = axis("y"), let z = axis("z") else { return nil }
        func along(_ row: Int) -> Double {
            mountMatrix[3 * row] * x + mountMatrix[3 * row + 1] * y + mountMatrix[3 * row + 2] * z
        }
        return Gravity(x: along(0), y: along(1), z: along(2))
    }

    /// All axes of a sensor have the same scale, which is left out.
    private func axis(_ name: String) -> Double? {
        firstLine(of: "\(folder)/in_accel_\(name)_raw").flatMap { Double($0) }
    }
}
