/// The memory of one binary message, with room before it for the transport's own header.
///
///     [ headroom: 16 bytes ][ message: `count` of `capacity` bytes ]
///
/// One holder fills it; from then on it is read-only and may be shared between threads and peers. The one exception is
/// a client's transport, which masks the message in place as it sends it and is then its only holder.
///
/// The methods that lend it are inlinable, as `Monitor`'s.
@usableFromInline @safe package final class PacketBuffer: @unchecked Sendable {
    // `@unchecked Sendable`: holds a pointer; the rule above is what makes it true.

    /// Bytes before the message: what libwebsockets wants (`LWS_PRE`), and more than any WebSocket header.
    @usableFromInline package static let headroom = 16

    /// The longest message that fits, in bytes.
    package let capacity: Int

    /// The length of the message, in bytes; set by the filling holder alone.
    @usableFromInline package var count: Int {
        didSet { precondition((0...capacity).contains(count), "\(count) bytes in a buffer for \(capacity)") }
    }

    /// The length of a transport header that stands directly before the message, in bytes; 0 for none.
    ///
    /// Set by the filling holder's transport, so that header and message can go to many peers as one run of bytes.
    @usableFromInline package var transportHeaderCount: Int {
        didSet { precondition((0...Self.headroom).contains(transportHeaderCount)) }
    }

    @usableFromInline let lendings = LendingRecord()
    @usableFromInline let memory: UnsafeMutableRawPointer

    /// A buffer for a message of up to `capacity` bytes; its content is undefined.
    package init(capacity: Int) {
        self.capacity = capacity
        self.count = 0
        self.transportHeaderCount = 0
        unsafe self.memory = .allocate(byteCount: Self.headroom + capacity, alignment: 16)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// Lends the message.
    @inlinable package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { lendings.lendingEnded() }
        return try body(unsafe RawSpan(_unsafeStart: memory + Self.headroom, byteCount: count))
    }

    /// Lends the message, `count` bytes, for writing; only for the one holder.
    ///
    /// `body` cannot throw, for the reason that `VideoBuffer.withMutablePlanes` gives.
    @inlinable package func withMutableBytes<Result>(_ body: (inout MutableRawSpan) -> Result) -> Result {
        defer { lendings.lendingEnded() }
        var bytes = unsafe MutableRawSpan(_unsafeStart: memory + Self.headroom, byteCount: count)
        return body(&bytes)
    }

    /// Lends headroom and message, in one run, for writing; only for the one holder's transport.
    @inlinable package func withTransportBytes<Result>(_ body: (inout MutableRawSpan) -> Result) -> Result {
        defer { lendings.lendingEnded() }
        var bytes = unsafe MutableRawSpan(_unsafeStart: memory, byteCount: Self.headroom + count)
        return body(&bytes)
    }

    /// Lends the transport's header and the message, in one run.
    @inlinable package func withFramedBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { lendings.lendingEnded() }
        let start = Self.headroom - transportHeaderCount
        return try body(unsafe RawSpan(_unsafeStart: memory + start, byteCount: transportHeaderCount + count))
    }
}

extension PacketBuffer: ReusableBuffer {
    /// Makes everything that earlier holders did with the buffer come before what the caller does next.
    package func acquireFromEarlierHolders() {
        lendings.acquire()
    }
}
