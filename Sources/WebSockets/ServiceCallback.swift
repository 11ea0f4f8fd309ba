import CWebSockets
import Glibc

/// Handles all of libwebsockets' callbacks, for all kinds of sockets.
func serviceCallback(
    _ wsi: OpaquePointer?,
    _ reason: lws_callback_reasons,
    _ user: UnsafeMutableRawPointer?,
    _ data: UnsafeMutableRawPointer?,
    _ count: Int
) -> Int32 {
    switch reason {
    case LWS_CALLBACK_RAW_RX_FILE:
        guard let host = unsafe lws_get_vhost(wsi), let user = unsafe lws_vhost_user(host) else { return 0 }
        unsafe Unmanaged<Listener>.fromOpaque(user).takeUnretainedValue().acceptAll()
        return 0
    case LWS_CALLBACK_SERVER_WRITEABLE, LWS_CALLBACK_CLIENT_WRITEABLE,
        LWS_CALLBACK_RECEIVE, LWS_CALLBACK_CLIENT_RECEIVE,
        LWS_CALLBACK_RECEIVE_PONG, LWS_CALLBACK_CLIENT_RECEIVE_PONG,
        LWS_CALLBACK_ESTABLISHED, LWS_CALLBACK_CLIENT_ESTABLISHED,
        LWS_CALLBACK_WS_PEER_INITIATED_CLOSE, LWS_CALLBACK_WSI_DESTROY,
        LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER, LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH,
        LWS_CALLBACK_CLIENT_CONNECTION_ERROR,
        LWS_CALLBACK_HTTP, LWS_CALLBACK_HTTP_WRITEABLE, LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        guard let wsi = unsafe wsi, let connection = unsafe connection(of: wsi) else {
            return 0
        }
        let bytes = unsafe UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : count)
        let result = unsafe connection.happened(reason, bytes, on: wsi)
        connection.service.workIsDone()
        return result
    default:
        return 0
    }
}

/// The connection stored as the socket's opaque pointer; `nil` for sockets that are not connections.
private func connection(of wsi: OpaquePointer) -> WebSocketConnection? {
    guard let pointer = unsafe lws_get_opaque_user_data(wsi) else { return nil }
    return unsafe Unmanaged<WebSocketConnection>.fromOpaque(pointer).takeUnretainedValue()
}

extension WebSocketConnection {
    fileprivate func happened(
        _ reason: lws_callback_reasons,
        _ bytes: UnsafeRawBufferPointer,
        on wsi: OpaquePointer
    ) -> Int32 {
        switch reason {
        case LWS_CALLBACK_SERVER_WRITEABLE, LWS_CALLBACK_CLIENT_WRITEABLE:
            return unsafe writable(on: wsi)
        case LWS_CALLBACK_RECEIVE, LWS_CALLBACK_CLIENT_RECEIVE:
            unsafe received(bytes, on: wsi)
            return 0
        case LWS_CALLBACK_RECEIVE_PONG, LWS_CALLBACK_CLIENT_RECEIVE_PONG:
            receivedPong()
            return 0
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
            return unsafe peerCloses(bytes)
        case LWS_CALLBACK_WSI_DESTROY:
            unsafe self.wsi = nil
            service.wsiDestroyed(of: self)
            return 0
        default:
            return unsafe handshakeHappened(reason, bytes, on: wsi)
        }
    }

    private func handshakeHappened(
        _ reason: lws_callback_reasons,
        _ bytes: UnsafeRawBufferPointer,
        on wsi: OpaquePointer
    ) -> Int32 {
        switch reason {
        case LWS_CALLBACK_ESTABLISHED: return unsafe acceptedHandshake(on: wsi)
        case LWS_CALLBACK_HTTP: return unsafe answerRequest(on: wsi)
        case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
            // The name comes without its length. An offer of HTTP/2 (h2c) is ignored (RFC 9110, section 7.8).
            guard let name = bytes.baseAddress else { return -1 }
            let isWebSocket = unsafe strcasecmp(name.assumingMemoryBound(to: CChar.self), "websocket") == 0
            return unsafe isWebSocket ? confirmUpgrade(on: wsi) : answerRequest(on: wsi)
        default: return unsafe clientHandshakeHappened(reason, bytes, on: wsi)
        }
    }
}
