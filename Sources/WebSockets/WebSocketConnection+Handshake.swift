import CWebSockets
import MediaCore
import Threading

/// Handshakes and plain HTTP requests.
extension WebSocketConnection {
    /// The longest path of a request, in bytes.
    private static let maximumPathCount = 1024

    /// Decides whether a client's complete request may become a WebSocket.
    ///
    /// - Returns: The result for libwebsockets: 0 to go on, -1 to end the connection.
    func confirmUpgrade(on wsi: OpaquePointer) -> Int32 {
        guard case .accepted(let listener) = role else { return -1 }
        let isSecure = unsafe lws_get_ssl(wsi) != nil
        let hasOrigin = unsafe hasHeader(WSI_TOKEN_ORIGIN, of: wsi)
        let origin = unsafe hasOrigin ? header(WSI_TOKEN_ORIGIN, of: wsi) : nil
        let host = unsafe header(WSI_TOKEN_HOST, of: wsi)
        guard listener.options.origins.admits(origin: origin, host: host, isSecure: isSecure) else {
            let sentence = OriginPolicy.refusal(origin: origin ?? "", host: host, isSecure: isSecure)
            LibraryLog.noteRefusal("refused a web page that \(peerAddress) has open: \(sentence)")
            return unsafe answer("403 Forbidden", sentence, on: wsi)
        }
        guard requestPath.utf8.count <= Self.maximumPathCount else {
            return unsafe answer("414 URI Too Long", "The path is beyond \(Self.maximumPathCount) bytes.", on: wsi)
        }
        return 0
    }

    /// Whether a request has a header, be it an empty one.
    private func hasHeader(_ token: lws_token_indexes, of wsi: OpaquePointer) -> Bool {
        // The length alone does not tell an empty header from none.
        var byte: CChar = 0
        return unsafe lws_hdr_total_length(wsi, token) > 0 || lws_hdr_copy_fragment(wsi, &byte, 1, token, 0) >= 0
    }

    /// Answers a plain HTTP request, which ends the connection.
    ///
    /// Only the first request of a connection is checked before libwebsockets reads it. A proxy that keeps connections
    /// takes another one for a WebSocket, because it is told that this one is closed.
    func answerRequest(on wsi: OpaquePointer) -> Int32 {
        guard case .accepted(let listener) = role else { return -1 }
        let isHead = unsafe lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0
        let isGet = unsafe lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0
        let isFound = requestPath == "/" && (isGet || isHead)
        let (status, sentence) = isFound ? ("200 OK", listener.options.greeting) : ("404 Not Found", "Nothing is here.")
        return unsafe answer(status, sentence, isHead: isHead, on: wsi)
    }

    /// Answers a request with `sentence`, all at once: a peer that sends no more is not waited for.
    ///
    /// - Returns: The result with which libwebsockets ends the connection.
    private func answer(_ status: String, _ sentence: String, isHead: Bool = false, on wsi: OpaquePointer) -> Int32 {
        let body = sentence + "\n"
        let head =
            "HTTP/1.1 \(status)\r\nContent-Type: text/plain; charset=utf-8\r\n"
            + "Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n"
        let answer = isHead ? head : head + body
        let count = answer.utf8.count
        let memory = unsafe service.scratch(count)
        for (offset, byte) in answer.utf8.enumerated() {
            unsafe memory.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
        }
        _ = unsafe lws_write(wsi, memory.assumingMemoryBound(to: UInt8.self), count, LWS_WRITE_HTTP_FINAL)
        return -1
    }

    /// Handles the end of a handshake on a client's side.
    func acceptedHandshake(on wsi: OpaquePointer) -> Int32 {
        guard case .accepted(let listener) = role else { return -1 }
        offeredSubprotocols = unsafe header(WSI_TOKEN_PROTOCOL, of: wsi)
        if !offeredSubprotocols.isEmpty, let name = unsafe lws_get_protocol(wsi)?.pointee.name {
            subprotocol = unsafe String(cString: name)
        }
        established(handler: listener.makeHandler())
        return 0
    }

    /// Handles the events of a client's handshake with a server.
    func clientHandshakeHappened(
        _ reason: lws_callback_reasons,
        _ bytes: UnsafeRawBufferPointer,
        on wsi: OpaquePointer
    ) -> Int32 {
        guard case .connecting(let attempt) = role else { return 0 }
        switch reason {
        case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
            attempt.isConnected = true
            setTimer(after: attempt.schedule.deadline.duration(since: MonotonicClock.now))
        case LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH:
            // libwebsockets continues even if the server accepted none of the offered subprotocols.
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
                let subprotocol = unsafe header(WSI_TOKEN_PROTOCOL, of: wsi)
                ending = .failed(attempt.handshakeError(status: status, subprotocol: subprotocol, text: text))
            }
        case LWS_CALLBACK_CLIENT_ESTABLISHED:
            established()
        default:
            break
        }
        return 0
    }

    /// The value of a header; empty if there is none.
    ///
    /// `max_http_header_data2`, the limit of libwebsockets, bounds its length.
    private func header(_ token: lws_token_indexes, of wsi: OpaquePointer) -> String {
        unsafe withHeader(token, of: wsi) { unsafe String(decoding: $0, as: UTF8.self) }
    }

    private func withHeader<Result>(
        _ token: lws_token_indexes,
        of wsi: OpaquePointer,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        let count = unsafe Int(lws_hdr_total_length(wsi, token))
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: count + 1) { memory in
            let copied = unsafe memory.baseAddress.map { unsafe lws_hdr_copy(wsi, $0, Int32(count + 1), token) } ?? -1
            let bytes = UnsafeRawBufferPointer(memory)
            return unsafe body(UnsafeRawBufferPointer(rebasing: bytes.prefix(max(0, Int(copied)))))
        }
    }
}
