/// How a loop uses libwebsockets.
///
/// Programs use the defaults; tests choose other values.
struct LoopSettings: Sendable {
    /// Whether binary messages go to sockets without TLS by `send()` instead of `lws_write`.
    ///
    /// Measured over 7 paired rounds with 8 kB messages: 6.34 us a message instead of 6.60 at 200 subscribers, no
    /// difference at 50.
    var sendsDirectly = true
    /// The time that a peer has to take our close message and answer it before it is cut off.
    var closeGrace = Duration.seconds(2)
    /// The time for which a peer must have sent media before it is read in the middle of a long turn.
    ///
    /// A flood of media is found out and disconnected by then.
    var mediaProbation = Duration.seconds(1)
    /// The silence after which libwebsockets itself sends a ping, in seconds; 0 for never.
    ///
    /// It is off because `IdlePolicy` does the same. By default libwebsockets pings after 300 s. After 310 s it
    /// disconnects a peer that has sent no pong, even if other messages came.
    var libraryPingSeconds: UInt16 = 0
    /// The silence after which libwebsockets itself disconnects, in seconds; 0 for never.
    var libraryHangUpSeconds: UInt16 = 0
}
