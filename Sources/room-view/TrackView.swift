import RoomKit
import Threading

/// A track's newest picture, on its way to the window.
///
/// Depth 1: the newest wins, and the one that it replaces goes back to its pool. Nothing is copied.
final class TrackView: VideoRenderer {
    /// The track.
    let track: RemoteVideoTrack
    private let newest = Monitor<VideoFrame?>(nil)
    private let bell: WindowBell

    /// Creates a view of `track` that rings `bell` for each picture.
    init(of track: RemoteVideoTrack, bell: WindowBell) {
        self.track = track
        self.bell = bell
    }

    func render(_ frame: VideoFrame) {
        let replaced = newest.withLock { newest -> VideoFrame? in
            defer { newest = frame }
            return newest
        }
        // Released outside the lock: this may free its memory.
        withExtendedLifetime(replaced) {}
        bell.ring()
    }

    /// Takes the newest picture; `nil` if it was taken already.
    func take() -> VideoFrame? {
        newest.withLock { newest in
            defer { newest = nil }
            return newest
        }
    }
}
