/// Reports how much of the other end's media one end of a connection has received so far.
///
/// A receiver sends it at a frame's end and while bytes arrive. The layout is in `docs/protocol.md`,
/// "Acknowledgements".
package struct MediaAcknowledgement: Hashable, Sendable {
    /// Bytes of text and binary messages received on the connection since it opened, without WebSocket headers.
    package var cumulativeBytes: UInt64
    /// When the last of these bytes arrived.
    package var receiveTime: ReceiverTime
    /// The track of the newest complete frame.
    package var trackAlias: UInt32
    /// The number of that frame.
    package var frameNumber: UInt32
    /// When that frame's first byte arrived; `nil` if the receiver cannot know.
    package var firstByteTime: ReceiverTime?
    /// When that frame's last byte arrived; `nil` if the receiver cannot know.
    package var lastByteTime: ReceiverTime?

    /// A point on the receiver's monotonic clock, with one fixed origin as long as the connection lasts.
    ///
    /// Use only differences. It is not room time: steps in a clock estimate would look like queues.
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

    /// Reads a binary message of kind `acknowledgement`, which may have any content.
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

    /// Reads a time; 0 stands for an unknown one.
    private static func time(_ message: RawSpan, at offset: Int) -> ReceiverTime? {
        let microseconds = message.bigEndian(at: offset, as: UInt64.self)
        return microseconds == 0 ? nil : ReceiverTime(microseconds: microseconds)
    }

    private static func bits(_ time: ReceiverTime?) -> UInt64 {
        (time?.microseconds ?? 0).bigEndian
    }
}
