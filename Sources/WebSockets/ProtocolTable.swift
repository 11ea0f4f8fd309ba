import CWebSockets

/// A virtual host's protocols and names, at addresses that stay valid as long as libwebsockets reads them.
@safe final class ProtocolTable {
    let protocols: UnsafeMutablePointer<lws_protocols>
    let hostName: UnsafeMutablePointer<CChar>
    private let names: [UnsafeMutablePointer<CChar>]

    /// The largest read from a server's socket at a time, in bytes.
    ///
    /// It is also the size of libwebsockets' one service buffer. It holds the longest binary message. With a larger
    /// one, a flood of pings, which libwebsockets answers by itself, could take a turn of the loop for over 10 ms.
    static let receiveByteCount = 16_384
    /// The largest read from a client's socket at a time, in bytes; its connection gets each read by itself.
    ///
    /// libwebsockets passes a message on when so much of it has come. On a thin link a message takes tenths of a second,
    /// and the server learns of a queue from the parts that have come (`WebSocketHandler.receivedBytes`). It is less
    /// than a TCP packet, so that most packets show.
    static let clientReceiveByteCount = 1024
    /// The most bytes written to the socket in one call, beyond the longest message.
    ///
    /// Longer data is copied and sent in parts of this size, one in each turn of the loop.
    private static let sendByteCount = 1 << 20

    /// - Parameters:
    ///   - hostName: The virtual host's name.
    ///   - protocolNames: The names of its protocols.
    ///   - receiveByteCount: The largest read from a socket at a time, in bytes.
    init(hostName: String, protocolNames: [String], receiveByteCount: Int = receiveByteCount) {
        unsafe self.hostName = Self.copy(hostName)
        let names = unsafe protocolNames.map { unsafe Self.copy($0) }
        unsafe self.names = unsafe names
        // One zeroed entry ends the table.
        unsafe protocols = .allocate(capacity: names.count + 1)
        unsafe protocols.initialize(repeating: lws_protocols(), count: names.count + 1)
        for index in unsafe names.indices {
            unsafe protocols[index].name = UnsafePointer(names[index])
            unsafe protocols[index].callback = serviceCallback
            unsafe protocols[index].rx_buffer_size = receiveByteCount
            unsafe protocols[index].tx_packet_size = Self.sendByteCount
        }
    }

    deinit {
        unsafe protocols.deinitialize(count: names.count + 1)
        unsafe protocols.deallocate()
        for index in unsafe names.indices { unsafe names[index].deallocate() }
        unsafe hostName.deallocate()
    }

    private static func copy(_ text: String) -> UnsafeMutablePointer<CChar> {
        let bytes = text.utf8CString
        let memory = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        for (index, byte) in bytes.enumerated() { unsafe (memory + index).initialize(to: byte) }
        return unsafe memory
    }
}
