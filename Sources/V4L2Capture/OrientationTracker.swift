import Glibc
public import MediaCore
import Threading

/// Says how a camera is held, so that its pictures come out upright.
public protocol OrientationTracker: AnyObject, Sendable {
    /// The clockwise turn that makes the camera's pictures upright at present.
    ///
    /// The source asks before each picture, on its capture thread: the answer must come at once.
    var rotation: VideoRotation { get }
}

/// A camera that is mounted once and for all.
public final class StaticOrientationTracker: OrientationTracker {
    /// The clockwise turn that makes the pictures upright.
    public let rotation: VideoRotation

    /// Creates a tracker that always answers `rotation`.
    public init(_ rotation: VideoRotation) {
        self.rotation = rotation
    }
}

/// A camera whose turn the application knows.
public final class ManualOrientationTracker: OrientationTracker {
    private let state: Monitor<VideoRotation>

    /// Creates a tracker that answers `rotation` until another turn is set.
    public init(_ rotation: VideoRotation = .none) {
        state = Monitor(rotation)
    }

    /// The clockwise turn that makes the pictures upright; any thread may set it.
    public var rotation: VideoRotation {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

/// Gravity along the axes of a device, in any unit, as Linux's industrial I/O drivers report it.
///
/// The axes are those of iio-sensor-proxy: a device that stands upright has a negative `y`, one that lies on its right
/// side, so that its left edge points up, a positive `x`.
struct Gravity: Equatable {
    var x: Double
    var y: Double
    var z: Double

    /// The angle from which an edge of the device counts as up; below it, the device lies flat.
    private static let leastDegrees = 35.0

    /// The turn that makes the pictures upright; `former` where two edges are about equally high, and where none is.
    func rotation(after former: VideoRotation) -> VideoRotation {
        let sideways = degrees(x, of: (y, z))
        let upright = degrees(y, of: (x, z))
        switch (abs(sideways) > Self.leastDegrees, abs(upright) > Self.leastDegrees) {
        case (true, false): return sideways > 0 ? .clockwise90 : .clockwise270
        case (false, true): return upright > 0 ? .half : .none
        default: return former
        }
    }

    /// The angle of an axis to the horizontal.
    private func degrees(_ axis: Double, of others: (Double, Double)) -> Double {
        atan2(axis, hypot(others.0, others.1)) * 180 / .pi
    }
}
