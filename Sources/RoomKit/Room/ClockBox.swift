import MediaCore
import RoomProtocol
import Threading

/// Shares the newest estimate of the server's clock with the threads that stamp and read frames.
final class ClockBox: Sendable {
    private let state = Monitor(ClockEstimate(basis: .estimated, offset: .zero, errorBound: .seconds(1)))

    var estimate: ClockEstimate {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
