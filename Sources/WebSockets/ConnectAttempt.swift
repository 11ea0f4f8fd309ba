import CWebSockets
import MediaCore
import Threading

/// The data of a client's connection attempt.
///
/// Confined to the loop's thread, which is checked.
final class ConnectAttempt {
    let options: ClientOptions
    private unowned let service: Service
    private var state: State
    /// What changes during the attempt, for the loop's thread alone.
    private var checkedState: State {
        get {
            service.checkThread()
            return state
        }
        _modify {
            service.checkThread()
            yield &state
        }
    }

    private struct State {
        var schedule = AddressSchedule<SocketAddress>(until: MonotonicInstant(nanoseconds: 0))
        /// All addresses of the host; `nil` until the name has been looked up.
        var addresses: [SocketAddress]?
        var isBegun = false
        var isConnected = false
    }

    /// The addresses, and the time for all of them; there are none until the name has been looked up.
    var schedule: AddressSchedule<SocketAddress> {
        get { checkedState.schedule }
        _modify { yield &checkedState.schedule }
    }
    /// Whether libwebsockets has been asked to connect to an address and has not reported the end yet.
    var isBegun: Bool {
        get { checkedState.isBegun }
        set { checkedState.isBegun = newValue }
    }
    /// Whether TCP is connected, so that any later failure is one of the handshake.
    var isConnected: Bool {
        get { checkedState.isConnected }
        set { checkedState.isConnected = newValue }
    }

    init(options: ClientOptions, on service: Service) {
        self.options = options
        self.service = service
        state = State()
    }

    /// Takes the addresses over, best first; the time for connecting begins.
    func resolved(to addresses: [SocketAddress]) {
        schedule = AddressSchedule(addresses, until: MonotonicClock.now + options.connectTimeout)
        checkedState.addresses = addresses
    }

    /// Whether the present address is to give way to another one at `now`, because it has not answered.
    func isGivingWay(at now: MonotonicInstant) -> Bool {
        !isConnected && schedule.hasNext && now < schedule.deadline
    }

    var attempted: String { "connect to \(options.url)" }

    var timeOutError: WebSocketError {
        let advice =
            if isConnected {
                "the connection was made, but no WebSocket handshake came; is it the right port?"
            } else if checkedState.addresses != nil {
                "no answer within \(options.connectTimeout.seconds) s; check the address, the network and firewalls."
            } else {
                "no name server told an address of \(options.url.host) within \(options.lookupTimeout.seconds) s; check "
                    + "the name and /etc/resolv.conf."
            }
        return WebSocketError(.timedOut, attempted: attempted, advice: advice)
    }

    var refusedError: WebSocketError {
        // libwebsockets does not say why TCP did not connect.
        let obstacles = checkedState.addresses?.map(\.obstacle) ?? []
        let advice =
            switch obstacles.contains(nil) ? nil : obstacles.last ?? nil {
            case .noWay(let words):
                "this machine finds no way there (\(words)); check the address and this machine's network."
            case .shortage(let words):
                "this program can open no socket (\(words)); raise its limit of open files (ulimit -n)."
            case nil:
                "nothing accepts connections there, or the machine is off; check that the server runs, its address and its "
                    + "port."
            }
        return WebSocketError(.connectionRefused, attempted: attempted, advice: advice)
    }

    var subprotocolError: WebSocketError {
        WebSocketError(
            .subprotocolRefused,
            attempted: attempted,
            advice: "the server does not speak \(options.subprotocol); use versions of client and server that match."
        )
    }

    /// The error for a handshake that failed.
    ///
    /// - Parameters:
    ///   - status: The HTTP status of the answer; 0 if none came.
    ///   - subprotocol: The subprotocol that the answer names.
    ///   - text: libwebsockets' message, for the log and the user.
    /// - Returns: The error for the handler.
    func handshakeError(status: Int32, subprotocol: String, text: String) -> WebSocketError {
        guard isConnected else { return refusedError }
        // libwebsockets itself refuses an answer with a subprotocol that was not offered.
        if status == 101 && !subprotocol.isEmpty && subprotocol != options.subprotocol { return subprotocolError }
        let answer =
            status > 0 && status != 101 ? "the answer was HTTP status \(status)" : "no answer came (\(text))"
        let advice = HTTPRefusal.advice(forStatus: Int(status)) ?? "check the address, the port and the path"
        return WebSocketError(
            .notAWebSocketServer,
            attempted: attempted,
            status: status > 0 ? status : nil,
            advice: "\(answer) instead of a WebSocket handshake; \(advice)."
        )
    }
}
