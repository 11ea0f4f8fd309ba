/// What to do about an HTTP answer that came instead of a WebSocket handshake.
package enum HTTPRefusal {
    /// The advice for a status whose reason is known, without a full stop; `nil` for others.
    package static func advice(forStatus status: Int) -> String? {
        switch status {
        case 401, 407: "the proxy in front wants a login: let /rooms/ pass"
        case 403: "let the proxy in front pass WebSockets; for web pages: room-server --allow-origin"
        case 404: "check the port and the path; behind a proxy, forward /rooms/ with Upgrade to room-server"
        case 503: "the server, or a proxy in front of it, is at its limit of connections or starting: try again later"
        default: nil
        }
    }
}
