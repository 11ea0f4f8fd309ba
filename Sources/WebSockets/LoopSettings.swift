/// How a loop uses libwebsockets.
///
/// Programs leave it as it is; tests choose the other ways.
struct LoopSettings: Sendable {
    /// Whether binary messages go to sockets without TLS by `send()`, and not by `lws_write`.
    ///
    /// Measured over 7 paired rounds with 8 kB messages: 6.34 us a message instead of 6.60 at 200 subscribers, no
    /// difference at 50.
    var sendsDirectly = true
    /// The time that a peer has to take our close message and answer it before it is cut off.
    var closeGrace = Duration.seconds(2)
    /// Silence after which libwebsockets pings by itself, in seconds; 0 for never.
    ///
    /// Off, because `IdlePolicy` does the same. By default libwebsockets pings after 300 s and hangs up after 310 s on
    /// whoever has sent no pong, even if other messages came.
    var libraryPingSeconds: UInt16 = 0
    /// Silence after which libwebsockets hangs up by itself, in seconds; 0 for never.
    var libraryHangUpSeconds: UInt16 = 0
}
