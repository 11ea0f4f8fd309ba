/// The parts of a `ws://` URL that a connection needs.
package struct WebSocketURL: Hashable, Sendable, CustomStringConvertible {
    /// A name or a numeric address, without the brackets of IPv6.
    package let host: String
    /// The TCP port; 80 if the URL has none.
    package let port: UInt16
    /// Path and query, as sent; starts with "/".
    package let path: String

    /// Reads a URL of the form `ws://host[:port][/path][?query]`.
    ///
    /// The URL must not have user information, a fragment, spaces or characters outside printable ASCII, and at most
    /// 2048 bytes.
    ///
    /// - Throws: `.badURL` with a sentence, `.tlsNotSupported` for `wss://`.
    package init(_ text: String) throws(WebSocketError) {
        let rest = try Self.afterScheme(text)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let authority = rest[..<end]
        let tail = rest[end...]
        guard !tail.contains("#") && !authority.contains("#") else {
            throw Self.bad(text, "a WebSocket URL has no fragment; leave out “#” and what follows it.")
        }
        guard !authority.contains("@") else {
            throw Self.bad(text, "a user name in the URL is not supported; pass a token instead.")
        }
        let (host, portText) = try Self.split(authority, of: text)
        self.host = host
        self.port = try portText.map { (digits) throws(WebSocketError) in try Self.port(digits, of: text) } ?? 80
        self.path = tail.first == "/" ? String(tail) : "/" + tail
    }

    /// The URL with `path` added after its own path and before its query.
    ///
    /// - Parameter path: Starts with "/". Characters other than letters, digits and "-._~/" are percent-encoded.
    /// - Returns: The longer URL.
    /// - Throws: `.badURL` if the result cannot be requested.
    package func appending(path: String) throws(WebSocketError) -> WebSocketURL {
        let query = self.path.firstIndex(of: "?").map { self.path[$0...] } ?? ""
        let base = self.path.dropLast(query.count)
        let authority = Self.authority(host: host, port: port)
        return try WebSocketURL("ws://\(authority)\(base.hasSuffix("/") ? base.dropLast() : base)\(path)\(query)")
    }

    /// The value of the Host header.
    var authority: String {
        // The name of an interface means something on this machine alone (RFC 6874, section 4).
        let host = String(host.prefix { $0 != "%" })
        return port == 80 ? Self.bracketed(host) : Self.authority(host: host, port: port)
    }

    /// The URL, always with its port, so that an error says which port was tried.
    package var description: String { "ws://\(Self.authority(host: host, port: port))\(path)" }

    /// `host:port`, with brackets around an IPv6 address.
    package static func authority(host: String, port: UInt16) -> String { "\(bracketed(host)):\(port)" }

    private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

    private static func afterScheme(_ text: String) throws(WebSocketError) -> Substring {
        guard text.utf8.count <= 2048 else {
            throw WebSocketError(.badURL, attempted: "read the URL", advice: "it is longer than 2048 bytes.")
        }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw bad(text, "it has a space or a character that must be percent-encoded.")
        }
        guard let separator = text.firstRange(of: "://") else {
            throw bad(text, "it must start with ws://, as in ws://127.0.0.1:8480.")
        }
        switch text[..<separator.lowerBound].lowercased() {
        case "ws":
            return text[separator.upperBound...]
        case "wss":
            throw WebSocketError(
                .tlsNotSupported,
                attempted: "connect to \(withoutUser(text))",
                advice: "wss:// (TLS) is not supported yet; use ws:// on a network you trust, or through a tunnel."
            )
        default:
            throw bad(text, "it must start with ws://, as in ws://127.0.0.1:8480.")
        }
    }

    private static func split(
        _ authority: Substring,
        of text: String
    ) throws(WebSocketError) -> (host: String, port: Substring?) {
        let host: Substring
        let rest: Substring
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { throw bad(text, "the “[” lacks its “]”.") }
            host = Self.withZone(authority[authority.index(after: authority.startIndex)..<end])
            rest = authority[authority.index(after: end)...]
            // After “%” comes the name of an interface (RFC 4007, section 11).
            let parts = host.utf8.split(separator: 0x25, maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0].allSatisfy({ isHexDigit($0) || $0 == 0x3a || $0 == 0x2e }),
                parts.count == 1 || !parts[1].isEmpty && parts[1].allSatisfy(isHostByte)
            else {
                throw bad(text, "what stands in brackets is not an IPv6 address.")
            }
        } else {
            let end = authority.firstIndex(of: ":") ?? authority.endIndex
            host = authority[..<end]
            rest = authority[end...]
            guard host.utf8.allSatisfy({ isHostByte($0) }) else {
                throw bad(text, "the host name has a character that no host name can have.")
            }
        }
        // RFC 1035, section 2.3.4: a name has at most 255 bytes.
        guard !host.isEmpty && host.utf8.count <= 255 else { throw bad(text, "it names no host.") }
        guard rest.isEmpty || rest.first == ":" else { throw bad(text, "after the host comes “:port” or a path.") }
        return (String(host), rest.isEmpty ? nil : rest.dropFirst())
    }

    /// An IPv6 address whose interface may be written as in a URL, behind “%25” (RFC 6874), or as elsewhere, behind “%”.
    private static func withZone(_ host: Substring) -> Substring {
        guard let sign = host.firstIndex(of: "%"), host[sign...].hasPrefix("%25"), host[sign...].utf8.count > 3 else {
            return host
        }
        return host[...sign] + host[sign...].dropFirst(3)
    }

    private static func port(_ digits: Substring, of text: String) throws(WebSocketError) -> UInt16 {
        guard digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let port = UInt16(digits), port > 0 else {
            throw bad(text, "the port must be a number from 1 to 65535.")
        }
        return port
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
            || byte == 0x2d || byte == 0x2e || byte == 0x5f
    }

    private static func bad(_ text: String, _ advice: String) -> WebSocketError {
        WebSocketError(.badURL, attempted: "read the URL \(withoutUser(text))", advice: advice)
    }

    /// The text with "…" for what may be a user name and password, so that no log has them.
    private static func withoutUser(_ text: String) -> String {
        let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
        let authority = text[start...].prefix { !"/?#".contains($0) }
        let port = authority.split(separator: ":", omittingEmptySubsequences: false).dropFirst().last ?? ""
        // A password with one of these characters seems to end the authority; it is no port.
        let isWhole = start > text.startIndex && port.allSatisfy(\.isNumber)
        guard let sign = (isWhole ? authority : text[start...]).lastIndex(of: "@") else { return text }
        return "\(text[..<start])…\(text[sign...])"
    }
}
