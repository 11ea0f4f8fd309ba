import CWebSockets
import MediaCore
import Threading

/// A message that has arrived in part.
struct IncomingMessage {
    /// The buffer that collects the parts; `nil` between messages.
    var buffer: PacketBuffer?
    /// The bytes that have arrived.
    var count = 0

    mutating func discard() {
        buffer = nil
        count = 0
    }
}

extension WebSocketConnection {
    /// Takes the next piece of a message from libwebsockets.
    func received(_ piece: UnsafeRawBufferPointer, on wsi: OpaquePointer) {
        guard phase == .open else { return }
        lastHeard = MonotonicClock.now
        let isBinary = unsafe lws_frame_is_binary(wsi) != 0
        let isFirst = unsafe lws_is_first_fragment(wsi) != 0
        if isFirst { incoming.discard() }
        // The frame's header gives its remaining length, so nothing is allocated for a message that is too long.
        let expected = unsafe lws_remaining_packet_payload(wsi)
        let limit = isBinary ? limits.maximumBinaryMessage : limits.maximumTextMessage
        guard expected <= limit, incoming.count + piece.count + expected <= limit else {
            return refuseLength(limit: limit, isBinary: isBinary)
        }
        handler?.receivedBytes(piece.count, from: self, at: lastHeard)
        guard phase == .open else { return }
        let isLast = unsafe expected == 0 && lws_is_final_fragment(wsi) != 0
        if isLast && !isBinary && incoming.buffer == nil { return unsafe deliverText(piece) }

        let buffer = room(for: piece.count, expected: expected, isLast: isLast, limit: limit)
        unsafe gather(piece, in: buffer)
        guard isLast else { return }
        buffer.count = incoming.count
        incoming.discard()
        if isBinary {
            takeBinary(buffer)
        } else {
            buffer.withBytes { bytes in unsafe bytes.withUnsafeBytes { unsafe deliverText($0) } }
        }
    }

    /// A buffer with room for the rest of the current frame.
    ///
    /// Only a message in one frame has a known length; for several frames there is room up to the limit.
    private func room(for pieceCount: Int, expected: Int, isLast: Bool, limit: Int) -> PacketBuffer {
        let needed = incoming.count + pieceCount + expected
        let present = incoming.buffer
        if let present, present.count >= needed { return present }
        // While bytes are missing, libwebsockets does not say whether the frame is the last.
        let isPerhapsWhole = present == nil && (isLast || expected > 0)
        let buffer = service.pool.take(count: isPerhapsWhole ? needed : limit)
        incoming.buffer = buffer
        guard let present else { return buffer }
        incoming.count = 0
        present.withBytes { bytes in
            unsafe bytes.withUnsafeBytes {
                unsafe gather(UnsafeRawBufferPointer(rebasing: $0[..<(needed - pieceCount - expected)]), in: buffer)
            }
        }
        return buffer
    }

    private func gather(_ piece: UnsafeRawBufferPointer, in buffer: PacketBuffer) {
        let offset = incoming.count
        buffer.withMutableBytes { bytes in
            unsafe bytes.withUnsafeMutableBytes { memory in
                unsafe memory.copyChecked(from: piece, at: offset)
            }
        }
        incoming.count += piece.count
    }

    private func deliverText(_ bytes: UnsafeRawBufferPointer) {
        let text = unsafe String(validating: bytes, as: UTF8.self)
        if let text {
            takeText(text)
            return
        }
        let error = WebSocketError(
            .invalidText,
            attempted: "read a text message of \(peerAddress)",
            advice: "it is not UTF-8; the peer must send binary data as binary messages."
        )
        end(.failed(error), code: 1007, reason: "a text message must be valid UTF-8")
    }

    private func refuseLength(limit: Int, isBinary: Bool) {
        let kind = isBinary ? "binary" : "text"
        let error = WebSocketError(
            .messageTooLarge,
            attempted: "read a message of \(peerAddress)",
            advice: "it is beyond \(limit) bytes, the limit of a \(kind) message; the peer must send smaller ones."
        )
        end(.failed(error), code: 1009, reason: "a \(kind) message may have at most \(limit) bytes")
    }

    /// Handles a pong.
    func receivedPong() {
        lastHeard = MonotonicClock.now
        guard phase == .open else { return }
        handler?.answeredPing(self, at: lastHeard)
    }

    /// Handles the peer's close message; libwebsockets answers it, unless it is the answer to ours.
    ///
    /// - Returns: The result for libwebsockets: -1 to end the connection.
    func peerCloses(_ payload: UnsafeRawBufferPointer) -> Int32 {
        guard !isCloseSent else { return -1 }
        deliverLast()
        guard phase == .open else { return 0 }
        phase = .closing
        // Our own timer, not libwebsockets', limits how long the answer may wait for room.
        setTimer(after: service.settings.closeGrace)
        // RFC 6455, section 7.1.5: 1005 means that there is no code.
        guard payload.count >= 2 else {
            ending = .byPeer(code: 1005, reason: "")
            return 0
        }
        let code = unsafe UInt16(payload[0]) << 8 | UInt16(payload[1])
        let reason = unsafe String(decoding: payload.dropFirst(2), as: UTF8.self)
        ending = .byPeer(code: code, reason: reason)
        return 0
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Copies `source` to `offset`; traps, also in release builds, if it would go beyond the end.
    func copyChecked(from source: UnsafeRawBufferPointer, at offset: Int) {
        precondition(
            offset >= 0 && offset <= count && source.count <= count - offset,
            "\(source.count) bytes do not fit at \(offset) of \(count)"
        )
        guard let start = source.baseAddress, let target = baseAddress else { return }
        unsafe (target + offset).copyMemory(from: start, byteCount: source.count)
    }
}
