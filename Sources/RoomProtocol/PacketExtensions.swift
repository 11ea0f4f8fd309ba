/// The extensions between a packet's fixed header and its payload; see section 6.5 of `docs/protocol.md`.
package struct PacketExtensions: Hashable, Sendable {
    /// The types of extension that this version reads.
    private enum Kind {
        static let padding: UInt8 = 0
        static let keyID: UInt8 = 3
    }

    /// Whether the frame's payload is encrypted.
    package private(set) var isEncrypted = false

    /// Reads the extensions of `message`, a packet whose `header` has been read; they may have any content.
    ///
    /// Unknown types are skipped. An extension that reaches beyond the header ends the list.
    package init(of message: RawSpan, _ header: MediaPacketHeader) {
        var offset = MediaPacketHeader.fixedLength
        while offset < header.headerLength {
            let kind = message.byte(at: offset)
            offset += 1
            if kind == Kind.padding { continue }
            guard offset < header.headerLength else { return }
            let length = Int(message.byte(at: offset))
            offset += 1 + length
            guard offset <= header.headerLength else { return }
            if kind == Kind.keyID { isEncrypted = true }
        }
    }
}
