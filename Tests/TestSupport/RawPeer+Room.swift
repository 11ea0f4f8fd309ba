package import RoomProtocol
package import TestTools

extension RawPeer {
    /// Connects and joins `room` of the relay at `port`, without reading the answer.
    package convenience init(
        joining room: String,
        as identity: String,
        port: UInt16,
        receiveBuffer: Int32? = nil
    ) throws {
        try self.init(port: port, receiveBuffer: receiveBuffer)
        handshake()
        send(text: ClientMessage.join(Join(room: room, identity: identity)).text)
    }

    /// Reads messages until `pick` returns a value for one; `nil` if the peer hangs up first.
    package func message<Value>(_ pick: (ServerMessage) -> Value?) -> Value? {
        var bytes: [UInt8] = []
        while true {
            let more = receive()
            guard !more.isEmpty else { return nil }
            bytes += more
            for message in messages(in: bytes) where message.opcode == 1 {
                let text = String(decoding: message.payload, as: UTF8.self)
                if let server = try? ServerMessage(reading: text), let value = pick(server) { return value }
            }
        }
    }

    /// Publishes a track; returns the alias for its packets.
    package func publish(_ name: String) -> UInt32? {
        let request = Publish(
            requestId: 1,
            name: name,
            source: "other",
            codec: VideoCodec.vp8,
            width: 320,
            height: 180,
            frameRate: 30
        )
        send(text: ClientMessage.publish(request).text)
        return message { if case .published(let body) = $0 { body.track.alias } else { nil } }
    }
}
