import CWebSockets
import MediaCore
import Threading

extension WebSocketConnection {
    /// The bytes that one connection sends before the others get their turn; several of the longest media packets.
    private static let turnByteCount = 65_536
    /// The bytes after which the system is asked whether a socket is full, of one that was full of late or is new.
    ///
    /// No more than the kernel may hold anyway, and enough for all but the largest frames.
    static let leastUncheckedByteCount = WebSocketConnection.lowWater
    /// The same of a socket that has had room for long; up to there it doubles each time that there is some.
    ///
    /// Should one fill up meanwhile, libwebsockets keeps a copy of the one message that does not fit.
    private static let mostUncheckedByteCount = 1 << 20
    /// What a message costs in a turn besides its bytes, so that empty ones end it too.
    private static let messageOverhead = 64

    /// The socket has room, libwebsockets says.
    ///
    /// - Returns: What libwebsockets wants: -1 to end the connection.
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
        return unsafe sendMessages(on: wsi) ? 0 : -1
    }

    /// Sends what was asked for since the loop's last turn.
    ///
    /// Most sockets have room most of the time. Asking the system about each before each message, as libwebsockets does,
    /// costs a tenth of a relay's time (measured with 200 subscribers).
    func sendRequested() {
        isSendRequested = false
        guard phase == .open, !isAwaitingRoom, let wsi = unsafe wsi else { return }
        guard unsafe !sendMessages(on: wsi) else { return }
        phase = .closing
        cutOff()
    }

    /// Has libwebsockets call `writable` once the socket has room.
    func awaitRoom() {
        guard let wsi = unsafe wsi else { return }
        isAwaitingRoom = true
        unsafe lws_callback_on_writable(wsi)
    }

    /// Sends what the handler wants, as long as the socket takes it.
    ///
    /// - Returns: `false` if the connection is broken.
    private func sendMessages(on wsi: OpaquePointer) -> Bool {
        var left = Self.turnByteCount
        while left > 0 {
            // On top of what did not fit, libwebsockets would only pile up copies; it calls again by itself.
            if unsafe lws_partial_buffered(wsi) != 0 {
                uncheckedByteLimit = Self.leastUncheckedByteCount
                return true
            }
            guard left == Self.turnByteCount || handler?.hasMessage(for: self) == true else { return true }
            if uncheckedByteCount >= uncheckedByteLimit {
                if unsafe lws_send_pipe_choked(wsi) != 0 {
                    uncheckedByteLimit = Self.leastUncheckedByteCount
                    break
                }
                uncheckedByteCount = 0
                uncheckedByteLimit = min(uncheckedByteLimit * 2, Self.mostUncheckedByteCount)
            }
            guard let message = handler?.nextMessage(for: self) else { return true }
            // The handler may have closed the connection while it was asked.
            guard phase == .open else { return true }
            if case .close(let code, let reason) = message {
                close(code: code, reason: reason)
                return true
            }
            guard let count = unsafe send(message, on: wsi) else { return false }
            uncheckedByteCount += count
            left -= count + Self.messageOverhead
        }
        awaitRoom()
        return true
    }

    /// Has libwebsockets send our close message and wait for the peer's.
    ///
    /// It calls once more when the message is gone; what is returned then must not end the wait. A socket that is closed
    /// with something unread is reset, and the reset may overtake what was sent.
    private func sendClose(on wsi: OpaquePointer) -> Int32 {
        guard let (code, reason) = closeMessage else { return isAwaitingCloseAnswer ? 0 : -1 }
        closeMessage = nil
        isAwaitingCloseAnswer = true
        var bytes = Array(reason.utf8)
        unsafe bytes.withUnsafeMutableBufferPointer {
            unsafe lws_close_reason(wsi, lws_close_status(rawValue: UInt32(code)), $0.baseAddress, $0.count)
        }
        return -1
    }

    /// The payload is the time, because libwebsockets reports no answer to an empty ping.
    private func sendPing(on wsi: OpaquePointer) -> Bool {
        let time = MonotonicClock.now.nanoseconds
        let memory = unsafe service.scratch(MemoryLayout<Int64>.size)
        unsafe memory.storeBytes(of: time, as: Int64.self)
        return unsafe write(memory, MemoryLayout<Int64>.size, LWS_WRITE_PING, on: wsi)
    }

    /// - Returns: The bytes of the message; `nil` if the connection is broken.
    private func send(_ message: OutgoingMessage, on wsi: OpaquePointer) -> Int? {
        switch message {
        case .text(var text):
            let count = text.utf8.count
            let memory = unsafe service.scratch(count)
            text.withUTF8 { utf8 in
                unsafe UnsafeMutableRawBufferPointer(start: memory, count: count).copyMemory(
                    from: UnsafeRawBufferPointer(utf8)
                )
            }
            return unsafe write(memory, count, LWS_WRITE_TEXT, on: wsi) ? count : nil
        case .shared(let packet):
            return unsafe sendShared(packet, on: wsi) ? packet.count : nil
        case .exclusive(let packet):
            // libwebsockets overwrites the headroom, whatever stood there.
            packet.transportHeaderCount = 0
            let isSent = packet.withTransportBytes { bytes in
                unsafe bytes.withUnsafeMutableBytes { memory in
                    guard let start = memory.baseAddress else { return false }
                    return unsafe write(start + PacketBuffer.headroom, packet.count, LWS_WRITE_BINARY, on: wsi)
                }
            }
            return isSent ? packet.count : nil
        case .close:
            return nil
        }
    }

    private func sendShared(_ packet: PacketBuffer, on wsi: OpaquePointer) -> Bool {
        guard case .accepted = role else {
            // A client masks in place what it sends, so it needs a copy.
            let count = packet.count
            let memory = unsafe service.scratch(count)
            packet.withBytes { bytes in
                unsafe bytes.withUnsafeBytes {
                    unsafe UnsafeMutableRawBufferPointer(start: memory, count: count).copyMemory(from: $0)
                }
            }
            return unsafe write(memory, count, LWS_WRITE_BINARY, on: wsi)
        }
        precondition(
            packet.transportHeaderCount == FrameHeader(payloadCount: packet.count).count,
            "a shared message of \(packet.count) bytes has a header of \(packet.transportHeaderCount): frameForSharing?"
        )
        return packet.withFramedBytes { bytes in
            unsafe bytes.withUnsafeBytes { framed in
                // The raw write reads only; its parameter is mutable for the sake of the masking ones.
                let start = unsafe UnsafeMutableRawPointer(mutating: framed.baseAddress)
                guard let start = unsafe start else { return false }
                return unsafe write(start, framed.count, cwebsockets_write_raw, on: wsi)
            }
        }
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
