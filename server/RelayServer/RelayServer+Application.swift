extension RelayServer {
    /// Starts a relay in this process, so that an application can be tested against a real room.
    ///
    /// The relay runs on a thread of its own until `stop()`, which a test must call. It writes no files and reads no
    /// settings.
    ///
    /// - Parameters:
    ///   - host: A numeric address of this machine; anybody who can reach it can join.
    ///   - port: The TCP port; 0 lets the system choose one, and `url` then contains it.
    /// - Returns: The relay, listening.
    /// - Throws: An error that says why the relay cannot listen there, and what to do.
    public static func start(host: String = "127.0.0.1", port: UInt16 = 0) throws -> RelayServer {
        var options = Options()
        options.host = host
        options.port = port
        return try RelayServer(options)
    }
}
