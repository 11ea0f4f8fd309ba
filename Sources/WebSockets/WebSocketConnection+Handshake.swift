import CWebSockets
import MediaCore

/// Handshakes, and what else HTTP brings.
extension WebSocketConnection {
    /// A client of ours is through with the handshake.
    func acceptedHandshake(on wsi: OpaquePointer) -> Int32 {
        guard case .accepted(let listener) = role else { return -1 }
        offeredSubprotocols = unsafe header(WSI_TOKEN_PROTOCOL, of: wsi)
        if !offeredSubprotocols.isEmpty, let name = unsafe lws_get_protocol(wsi)?.pointee.name {
            subprotocol = unsafe String(cString: name)
        }
        established(handler: listener.makeHandler())
        return 0
    }

    /// How the handshake with a server goes.
    func clientHandshakeHappened(
        _ reason: lws_callback_reasons,
        _ bytes: UnsafeRawBufferPointer,
        on wsi: OpaquePointer
    ) -> Int32 {
        guard case .connecting(let attempt) = role else { return 0 }
        switch reason {
        case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
            attempt.isConnected = true
        case LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH:
            // libwebsockets goes on with a server that took none of what was offered.
            let name = unsafe header(WSI_TOKEN_PROTOCOL, of: wsi)
            guard name == attempt.options.subprotocol else {
                ending = .failed(attempt.subprotocolError)
                return -1
            }
            subprotocol = name
        case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
            if ending == nil {
                let text = unsafe String(decoding: bytes, as: UTF8.self)
                let status = unsafe Int32(bitPattern: lws_http_client_http_response(wsi))
                ending = .failed(attempt.handshakeError(text: text, status: status))
            }
        case LWS_CALLBACK_CLIENT_ESTABLISHED:
            established()
        default:
            break
        }
        return 0
    }

    /// Begins the answer to a plain HTTP request.
    func answerRequest(path: UnsafeRawBufferPointer, on wsi: OpaquePointer) -> Int32 {
        guard case .accepted(let listener) = role else { return -1 }
        let isRoot = unsafe path.elementsEqual("/".utf8)
        let isGet = unsafe lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0
        let isFound = isRoot && isGet
        let text = (isFound ? listener.options.greeting : "Nothing is here.") + "\n"
        let status = isFound ? HTTP_STATUS_OK.rawValue : HTTP_STATUS_NOT_FOUND.rawValue
        let isBegun = unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { memory -> Bool in
            guard let base = memory.baseAddress else { return false }
            let start = unsafe (base + PacketBuffer.headroom).assumingMemoryBound(to: UInt8.self)
            let end = unsafe base.assumingMemoryBound(to: UInt8.self) + memory.count - 1
            var next: UnsafeMutablePointer<UInt8>? = unsafe start
            let length = lws_filepos_t(text.utf8.count)
            let type = "text/plain; charset=utf-8"
            return unsafe lws_add_http_common_headers(wsi, status, type, length, &next, end) == 0
                && lws_finalize_write_http_header(wsi, start, &next, end) == 0
        }
        guard isBegun else { return -1 }
        httpAnswer = text
        unsafe lws_callback_on_writable(wsi)
        return 0
    }

    /// Completes the answer to a plain HTTP request.
    func writeAnswer(on wsi: OpaquePointer) -> Int32 {
        guard let text = httpAnswer else { return 0 }
        httpAnswer = nil
        let count = text.utf8.count
        let memory = unsafe service.scratch(count)
        for (offset, byte) in text.utf8.enumerated() {
            unsafe memory.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
        }
        let bytes = unsafe memory.assumingMemoryBound(to: UInt8.self)
        guard unsafe lws_write(wsi, bytes, count, LWS_WRITE_HTTP_FINAL) >= 0 else { return -1 }
        return unsafe lws_http_transaction_completed(wsi) == 0 ? 0 : -1
    }

    private func header(_ token: lws_token_indexes, of wsi: OpaquePointer) -> String {
        let count = unsafe Int(lws_hdr_total_length(wsi, token))
        guard count > 0 && count < 1024 else { return "" }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: count + 1) { memory in
            guard let base = memory.baseAddress else { return "" }
            guard unsafe lws_hdr_copy(wsi, base, Int32(count + 1), token) > 0 else { return "" }
            return unsafe String(cString: base)
        }
    }
}
