/// What one end of a connection has received of the other's media so far.
///
/// Sent by a receiver at a frame's end and while bytes arrive; the layout is in `docs/protocol.md`,
/// "Acknowledgements".
package struct MediaAcknowledgement: Hashable, Sendable {
    /// Bytes of text and binary messages received on the connection, from its beginning, WebSocket headers left out.
    package var cumulativeBytes: UInt64
    /// When the last of them came.
    package var receiveTime: ReceiverTime
    /// The track of the newest frame that is complete.
    package var trackAlias: UInt32
    /// The number of that frame.
    package var frameNumber: UInt32
    /// When that frame's first byte came; `nil` where the receiver cannot know.
    package var firstByteTime: ReceiverTime?
    /// When that frame's last byte came; `nil` where the receiver cannot know.
    package var lastByteTime: ReceiverTime?

    /// A point on the receiver's monotonic clock, counted from one origin as long as the connection lasts.
    ///
    /// Only differences count. It is no room time, because the steps of a clock estimate would read as queues.
    package struct ReceiverTime: Hashable, Sendable {
        /// Microseconds since the origin.
        package var microseconds: UInt64

        /// The point `microseconds` after the origin.
        package init(microseconds: UInt64) {
            self.microseconds = microseconds
        }
    }

    /// The length of the message, in bytes.
    package static let length = 48

    /// An acknowledgement with the given fields.
    package init(
        cumulativeBytes: UInt64,
        receiveTime: ReceiverTime,
        trackAlias: UInt32,
        frameNumber: UInt32,
        firstByteTime: ReceiverTime? = nil,
        lastByteTime: ReceiverTime? = nil
    ) {
        self.cumulativeBytes = cumulativeBytes
        self.receiveTime = receiveTime
        self.trackAlias = trackAlias
        self.frameNumber = frameNumber
        self.firstByteTime = firstByteTime
        self.lastByteTime = lastByteTime
    }

    /// Reads a binary message of kind `acknowledgement`: anything may be in it.
    package init(reading message: RawSpan) throws(MalformedPacket) {
        guard message.byteCount >= Self.length else {
            throw MalformedPacket("an acknowledgement of \(message.byteCount) bytes instead of \(Self.length)")
        }
        guard message.byte(at: 0) == UInt8(WireFormat.version) else {
            throw MalformedPacket("acknowledgement version \(message.byte(at: 0)), not \(WireFormat.version)")
        }
        cumulativeBytes = message.bigEndian(at: 8, as: UInt64.self)
        receiveTime = Self.time(message, at: 16) ?? ReceiverTime(microseconds: 0)
        trackAlias = message.bigEndian(at: 24, as: UInt32.self)
        frameNumber = message.bigEndian(at: 28, as: UInt32.self)
        firstByteTime = Self.time(message, at: 32)
        lastByteTime = Self.time(message, at: 40)
    }

    /// Writes the acknowledgement to `message`, which has `length` bytes.
    package func write(to message: inout MutableRawSpan) {
        message.storeBytes(of: UInt8(WireFormat.version), toByteOffset: 0, as: UInt8.self)
        message.storeBytes(of: BinaryMessageKind.acknowledgement.rawValue, toByteOffset: 1, as: UInt8.self)
        message.storeBytes(of: UInt16(Self.length).bigEndian, toByteOffset: 2, as: UInt16.self)
        message.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
        message.storeBytes(of: cumulativeBytes.bigEndian, toByteOffset: 8, as: UInt64.self)
        message.storeBytes(of: Self.bits(receiveTime), toByteOffset: 16, as: UInt64.self)
        message.storeBytes(of: trackAlias.bigEndian, toByteOffset: 24, as: UInt32.self)
        message.storeBytes(of: frameNumber.bigEndian, toByteOffset: 28, as: UInt32.self)
        message.storeBytes(of: Self.bits(firstByteTime), toByteOffset: 32, as: UInt64.self)
        message.storeBytes(of: Self.bits(lastByteTime), toByteOffset: 40, as: UInt64.self)
    }

    /// A time of 0 stands for an unknown one.
    private static func time(_ message: RawSpan, at offset: Int) -> ReceiverTime? {
        let microseconds = message.bigEndian(at: offset, as: UInt64.self)
        return microseconds == 0 ? nil : ReceiverTime(microseconds: microseconds)
    }

    private static func bits(_ time: ReceiverTime?) -> UInt64 {
        (time?.microseconds ?? 0).bigEndian
    }
}
