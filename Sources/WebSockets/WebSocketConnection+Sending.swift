import CWebSockets
import Glibc
import MediaCore
import Threading

extension WebSocketConnection {
    /// The bytes between two checks whether a socket is full, for a new socket or one that was full recently.
    ///
    /// This is no more than the kernel may hold anyway, and enough for all frames except the largest.
    static let leastUncheckedByteCount = WebSocketConnection.lowWater
    /// The bytes between two checks for a socket that has had room for long; the number doubles with each such check.
    ///
    /// If the socket fills up in between, libwebsockets keeps a copy of the one message that does not fit.
    private static let mostUncheckedByteCount = 1 << 20

    /// Handles libwebsockets' report that the socket has room.
    ///
    /// - Returns: The result for libwebsockets: -1 to end the connection.
    func writable(on wsi: OpaquePointer) -> Int32 {
        isAwaitingRoom = false
        uncheckedByteCount = 0
        switch phase {
        case .closing: return unsafe sendClose(on: wsi)
        case .open: break
        case .handshaking, .closed: return 0
        }
        if isPingWanted {
            isPingWanted = false
            guard unsafe sendPing(on: wsi) else { return -1 }
        }
        requestWrite()
        return 0
    }

    /// Finds out whether the socket can take a message, for `askForNext` in the same round.
    func lookForRoom() {
        guard phase == .open, let wsi = unsafe wsi else {
            isRoomSeen = false
            return
        }
        isRoomSeen = unsafe hasRoom(on: wsi)
    }

    /// Asks the handler for its next message; `isUrgent` names the list of senders that the connection stood on.
    ///
    /// A text is sent at once. A binary message is left for `sendNext`, which the loop calls before it asks again.
    func askForNext(isUrgent: Bool, at now: MonotonicInstant) {
        precondition(outgoing == nil, "a second message for \(peerAddress) before the first one is sent")
        setListed(false, isUrgent: isUrgent)
        hasMore = takeNext(at: now)
        if !hasMore { return }
        // If a request has come meanwhile, the connection is already listed for the next turn.
        hasMore = !isListed(isUrgent: isUrgent)
        setListed(true, isUrgent: isUrgent)
    }

    /// Takes the handler's next message, if the socket has room.
    ///
    /// - Returns: Whether the handler has more.
    private func takeNext(at now: MonotonicInstant) -> Bool {
        guard phase == .open, isRoomSeen, let wsi = unsafe wsi, let handler else { return false }
        guard let (message, isLast) = handler.nextMessage(for: self, at: now), phase == .open else {
            isUrgent = false
            return false
        }
        switch message {
        case .text(let text):
            guard let count = unsafe send(text, on: wsi) else {
                breakOff()
                return false
            }
            uncheckedByteCount += count
        case .shared(let packet): outgoing = frameToShare(packet)
        case .exclusive(let packet): outgoing = frame(packet)
        case .close(let code, let reason):
            close(code: code, reason: reason)
            return false
        }
        if isLast { isUrgent = false }
        return !isLast
    }

    /// Sends the message that `askForNext` has left, if it has.
    ///
    /// `lookForRoom` has seen in this round that libwebsockets keeps no bytes of an earlier write. Nothing is written
    /// to the socket in between, because `askForNext` refuses a second message and libwebsockets runs only between
    /// rounds.
    ///
    /// - Returns: Whether the handler has more, and the connection stays listed.
    func sendNext() -> Bool {
        guard let packet = outgoing else { return hasMore }
        outgoing = nil
        uncheckedByteCount += packet.count
        guard let wsi = unsafe wsi else { return hasMore }
        if unsafe !transmit(packet, on: wsi, isNothingKept: true) { breakOff() }
        return hasMore
    }

    private var isServer: Bool { if case .accepted = role { true } else { false } }

    /// `packet` with its header, masked if a client sends it; only the one holder may call this.
    private func frame(_ packet: PacketBuffer, as kind: FrameHeader.Kind = .binary) -> PacketBuffer {
        let key = isServer ? nil : service.maskingKeys.next()
        FrameHeader(kind, payloadCount: packet.count, maskingKey: key).write(to: packet)
        return packet
    }

    /// A shared packet in its form for sending: with its header, or as a copy that a client can mask.
    private func frameToShare(_ packet: PacketBuffer) -> PacketBuffer {
        guard isServer else { return frame(copy(of: packet)) }
        precondition(
            packet.transportHeaderCount == FrameHeader(payloadCount: packet.count).count,
            "a shared message of \(packet.count) bytes has a header of \(packet.transportHeaderCount): frameForSharing?"
        )
        return packet
    }

    private func copy(of packet: PacketBuffer) -> PacketBuffer {
        let copy = service.pool.take(count: packet.count)
        packet.withBytes { bytes in
            copy.withMutableBytes { target in
                unsafe target.withUnsafeMutableBytes { target in
                    unsafe bytes.withUnsafeBytes { unsafe target.copyChecked(from: $0, at: 0) }
                }
            }
        }
        return copy
    }

    /// Whether the socket can take a message; if not, libwebsockets calls `writable` when it can.
    ///
    /// Most sockets have room most of the time, and asking the system takes a good part of the cost of sending. So the
    /// system is asked about each socket now and then; libwebsockets itself would ask before each message.
    private func hasRoom(on wsi: OpaquePointer) -> Bool {
        guard !isAwaitingRoom else { return false }
        // libwebsockets would only queue copies behind what did not fit; it calls again by itself.
        guard unsafe lws_partial_buffered(wsi) == 0 else {
            uncheckedByteLimit = Self.leastUncheckedByteCount
            watchForEnd()
            return false
        }
        guard uncheckedByteCount >= uncheckedByteLimit else { return true }
        guard unsafe lws_send_pipe_choked(wsi) == 0 else {
            uncheckedByteLimit = Self.leastUncheckedByteCount
            awaitRoom()
            return false
        }
        uncheckedByteCount = 0
        uncheckedByteLimit = min(uncheckedByteLimit * 2, Self.mostUncheckedByteCount)
        return true
    }

    /// Ends the connection after a failed write, because libwebsockets no longer asks about such a socket.
    private func breakOff() {
        phase = .closing
        cutOff()
    }

    /// Asks libwebsockets to call `writable` once the socket has room.
    func awaitRoom() {
        guard let wsi = unsafe wsi else { return }
        isAwaitingRoom = true
        unsafe lws_callback_on_writable(wsi)
    }

    /// Sends our close message, once; the connection ends with the peer's answer, or after `closeGrace`.
    ///
    /// libwebsockets would keep the message, until the socket has room, where it also keeps the payload of the next
    /// ping. The wait for the answer has a reason: a socket that is closed with unread data is reset, and the reset may
    /// overtake what was sent.
    ///
    /// - Returns: The result for libwebsockets: -1 to end the connection.
    private func sendClose(on wsi: OpaquePointer) -> Int32 {
        guard let (code, reason) = closeMessage else { return isCloseSent ? 0 : -1 }
        closeMessage = nil
        isCloseSent = true
        let payload = [UInt8(code >> 8), UInt8(code & 255)] + Array(reason.utf8)
        let packet = service.pool.take(count: payload.count)
        packet.withMutableBytes { bytes in
            for (offset, byte) in payload.enumerated() {
                bytes.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
            }
        }
        return unsafe transmit(frame(packet, as: .close), on: wsi, isNothingKept: false) ? 0 : -1
    }

    /// Sends a ping with the time as payload, because libwebsockets does not report the answer to an empty ping.
    private func sendPing(on wsi: OpaquePointer) -> Bool {
        let time = MonotonicClock.now.nanoseconds
        let memory = unsafe service.scratch(MemoryLayout<Int64>.size)
        unsafe memory.storeBytes(of: time, as: Int64.self)
        return unsafe write(memory, MemoryLayout<Int64>.size, LWS_WRITE_PING, on: wsi)
    }

    /// - Returns: The bytes of the message; `nil` if the connection is broken.
    private func send(_ text: String, on wsi: OpaquePointer) -> Int? {
        var text = text
        let count = text.utf8.count
        let memory = unsafe service.scratch(count)
        text.withUTF8 { utf8 in
            unsafe UnsafeMutableRawBufferPointer(start: memory, count: count).copyChecked(
                from: UnsafeRawBufferPointer(utf8),
                at: 0
            )
        }
        return unsafe write(memory, count, LWS_WRITE_TEXT, on: wsi) ? count : nil
    }

    private func transmit(_ packet: PacketBuffer, on wsi: OpaquePointer, isNothingKept: Bool) -> Bool {
        packet.withFramedBytes { bytes in
            unsafe bytes.withUnsafeBytes { unsafe transmit($0, on: wsi, isNothingKept: isNothingKept) }
        }
    }

    /// Writes a finished frame to the peer, by `send()` or by libwebsockets; no other code does this.
    ///
    /// libwebsockets keeps a copy of the bytes that the socket does not take, and sends them before anything else.
    /// While it has such bytes, no other write may pass them: its bytes would land inside a frame.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - wsi: The socket, for libwebsockets.
    ///   - isNothingKept: Whether the caller knows that libwebsockets has no such bytes. Asking takes 1 to 2 % of a
    ///     relay's time, because libwebsockets' structure is then in none of the processor's caches.
    /// - Returns: `false` if the connection is broken.
    private func transmit(_ frame: UnsafeRawBufferPointer, on wsi: OpaquePointer, isNothingKept: Bool) -> Bool {
        guard let start = frame.baseAddress else { return false }
        var taken = 0
        if sendsDirectly, unsafe isNothingKept || lws_partial_buffered(wsi) == 0 {
            let sent = unsafe Glibc.send(socket, start, frame.count, Int32(MSG_NOSIGNAL))
            if sent == frame.count { return true }
            guard sent >= 0 || errno == EAGAIN || errno == EINTR else { return false }
            taken = max(0, sent)
        }
        // The raw write only reads; its parameter is mutable because other kinds of write mask.
        let rest = unsafe UnsafeMutableRawPointer(mutating: start + taken)
        guard unsafe write(rest, frame.count - taken, cwebsockets_write_raw, on: wsi) else { return false }
        if unsafe lws_partial_buffered(wsi) != 0 { watchForEnd() }
        return true
    }

    private func write(
        _ memory: UnsafeMutableRawPointer,
        _ count: Int,
        _ kind: lws_write_protocol,
        on wsi: OpaquePointer
    ) -> Bool {
        unsafe lws_write(wsi, memory.assumingMemoryBound(to: UInt8.self), count, kind) >= 0
    }
}
