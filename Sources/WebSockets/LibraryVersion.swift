import CWebSockets

/// The library behind this module.
package enum WebSocketLibrary {
    /// The version of libwebsockets that is loaded, as in "4.1.6".
    package static var version: String {
        guard let text = unsafe lws_get_library_version() else { return "" }
        // Debian's text ends with a hyphen, after which a commit would stand.
        return String(unsafe String(cString: text).prefix { $0 != "-" })
    }
}
