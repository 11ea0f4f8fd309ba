/// The memory of one binary message, with room before it for the transport's own header.
///
///     [ headroom: 16 bytes ][ message: `count` of `capacity` bytes ]
///
/// One holder fills it. From then on it is read-only and may be shared between threads and peers. There is one
/// exception: a client's transport masks the message in place as it sends it, and is then its only holder.
///
/// The methods that lend the memory are inlinable for the same reason as those of `Monitor`.
@usableFromInline @safe package final class PacketBuffer: @unchecked Sendable {
    // `@unchecked Sendable`: it holds a pointer; the rule above makes sharing it safe.

    /// Bytes before the message: what libwebsockets wants (`LWS_PRE`), and more than any WebSocket header.
    @usableFromInline package static let headroom = 16

    /// The longest message that fits, in bytes.
    package let capacity: Int

    /// The length of the message, in bytes; only the holder that fills the buffer sets it.
    @usableFromInline package var count: Int {
        didSet { precondition((0...capacity).contains(count), "\(count) bytes in a buffer for \(capacity)") }
    }

    /// The length of the transport header directly before the message, in bytes; 0 for none.
    ///
    /// The transport of the holder that fills the buffer sets it, so that header and message can go to many peers as
    /// one run of bytes.
    @usableFromInline package var transportHeaderCount: Int {
        didSet { precondition((0...Self.headroom).contains(transportHeaderCount)) }
    }

    @usableFromInline let lendings = LendingRecord()
    @usableFromInline let memory: UnsafeMutableRawPointer

    /// Creates a buffer for a message of up to `capacity` bytes; its content is undefined.
    package init(capacity: Int) {
        self.capacity = capacity
        self.count = 0
        self.transportHeaderCount = 0
        unsafe self.memory = .allocate(byteCount: Self.headroom + capacity, alignment: 16)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// Lends the message for reading.
    @inlinable package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { lendings.lendingEnded() }
        return try body(unsafe RawSpan(_unsafeStart: memory + Self.headroom, byteCount: count))
    }

    /// Lends the message, `count` bytes, for writing; only its one holder may call this.
    ///
    /// `body` must not throw, for the reason given at `VideoBuffer.withMutablePlanes`.
    @inlinable package func withMutableBytes<Result>(_ body: (inout MutableRawSpan) -> Result) -> Result {
        defer { lendings.lendingEnded() }
        var bytes = unsafe MutableRawSpan(_unsafeStart: memory + Self.headroom, byteCount: count)
        return body(&bytes)
    }

    /// Lends headroom and message for writing, as one run of bytes; only the one holder's transport may call this.
    @inlinable package func withTransportBytes<Result>(_ body: (inout MutableRawSpan) -> Result) -> Result {
        defer { lendings.lendingEnded() }
        var bytes = unsafe MutableRawSpan(_unsafeStart: memory, byteCount: Self.headroom + count)
        return body(&bytes)
    }

    /// Lends the transport's header and the message for reading, as one run of bytes.
    @inlinable package func withFramedBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { lendings.lendingEnded() }
        let start = Self.headroom - transportHeaderCount
        return try body(unsafe RawSpan(_unsafeStart: memory + start, byteCount: transportHeaderCount + count))
    }
}

extension PacketBuffer: ReusableBuffer {
    /// Makes everything that earlier holders did with the buffer happen before what the caller does next.
    package func acquireFromEarlierHolders() {
        lendings.acquire()
    }
}
