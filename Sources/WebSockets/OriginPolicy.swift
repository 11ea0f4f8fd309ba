import Glibc

/// The origin of a web page, as browsers write it into the `Origin` header (RFC 6454, section 6.2).
package struct WebOrigin: Hashable, Sendable {
    /// The origin of pages that have none, such as local files; written "null".
    package static let null = WebOrigin(scheme: "null", host: "", port: nil)

    /// "http", "https" or another scheme, in lower case.
    let scheme: String
    /// A name or a numeric address, in lower case; IPv6 stands in brackets.
    let host: String
    /// The TCP port; always there for "http" and "https".
    let port: UInt16?

    private init(scheme: String, host: String, port: UInt16?) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Reads `scheme://host[:port]` or `null`; returns `nil` for anything else, for example if there is a path.
    package init?(_ text: String) {
        // Other texts can take long to compare.
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let text = text.lowercased()
        guard text != "null" else {
            self = .null
            return
        }
        guard let separator = text.firstRange(of: "://") else { return nil }
        let scheme = text[..<separator.lowerBound]
        guard let first = scheme.utf8.first, (0x61...0x7a).contains(first),
            scheme.utf8.allSatisfy({
                (0x61...0x7a).contains($0) || (0x2b...0x39).contains($0) && $0 != 0x2c && $0 != 0x2f
            })
        else { return nil }
        guard let authority = HostAndPort(text[separator.upperBound...]) else { return nil }
        self.init(
            scheme: String(scheme),
            host: authority.host,
            port: authority.port ?? Self.defaultPort(of: String(scheme))
        )
    }

    /// The origin of a page that was loaded from the server whose `Host` header is `authority`.
    init(of authority: HostAndPort, isSecure: Bool) {
        let scheme = isSecure ? "https" : "http"
        self.init(scheme: scheme, host: authority.host, port: authority.port ?? Self.defaultPort(of: scheme))
    }

    private static func defaultPort(of scheme: String) -> UInt16? {
        switch scheme {
        case "http": 80
        case "https": 443
        default: nil
        }
    }
}

/// A host with or without a port, as in the `Host` header (RFC 9110, section 7.2).
struct HostAndPort: Equatable, Sendable {
    /// A name or a numeric address, in lower case; IPv6 stands in brackets.
    let host: String
    let port: UInt16?

    /// Reads `text`; returns `nil` if it is anything else.
    init?(_ text: some StringProtocol) {
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let text = text.lowercased()
        let hostEnd: String.Index
        if text.first == "[" {
            guard let bracket = text.firstIndex(of: "]") else { return nil }
            hostEnd = text.index(after: bracket)
        } else {
            hostEnd = text.firstIndex(of: ":") ?? text.endIndex
        }
        host = String(text[..<hostEnd])
        guard !host.isEmpty, host.utf8.allSatisfy({ Self.isHostByte($0) }) else { return nil }
        let rest = text[hostEnd...]
        guard !rest.isEmpty else {
            port = nil
            return
        }
        let digits = rest.dropFirst()
        guard rest.first == ":", digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits)
        else { return nil }
        self.port = port
    }

    /// Whether the host is an IPv4 or IPv6 address, which no name server can point elsewhere.
    var isNumeric: Bool {
        if host.first == "[" {
            var address = in6_addr()
            return unsafe inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &address) == 1
        }
        var address = in_addr()
        return unsafe inet_pton(AF_INET, host, &address) == 1
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
            UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }
}

/// The web pages that may connect to a listener.
///
/// Programs that are not browsers send no `Origin`, and may always connect. A browser lets any page open a WebSocket to
/// any server that it can reach, even on the same machine. It only states in `Origin` where the page comes from; the
/// server must refuse the connection (RFC 6455, section 10.2).
package struct OriginPolicy: Sendable {
    /// The names under which pages of this server are loaded, besides its numeric addresses and `localhost`.
    ///
    /// An attacker could make another name point to this machine (DNS rebinding), so that page and server seem to have
    /// the same origin.
    package var hostNames: Set<String>
    /// Origins that may connect although their pages come from elsewhere.
    package var allowedOrigins: Set<WebOrigin>

    /// Creates a policy; by default it admits pages that this server itself serves under an address or `localhost`.
    package init(hostNames: Set<String> = [], allowedOrigins: Set<WebOrigin> = []) {
        self.hostNames = Set(hostNames.map { $0.lowercased() })
        self.allowedOrigins = allowedOrigins
    }

    /// Whether a connection with these headers may be made.
    ///
    /// - Parameters:
    ///   - origin: The `Origin` header; `nil` if there is none.
    ///   - host: The `Host` header.
    ///   - isSecure: Whether the connection has TLS.
    /// - Returns: `false` if the handshake must be refused.
    func admits(origin: String?, host: String, isSecure: Bool) -> Bool {
        guard let origin else { return true }
        guard let origin = WebOrigin(origin) else { return false }
        if allowedOrigins.contains(origin) { return true }
        guard let authority = HostAndPort(host), origin == WebOrigin(of: authority, isSecure: isSecure) else {
            return false
        }
        return authority.isNumeric || authority.host == "localhost" || hostNames.contains(authority.host)
    }

    /// Why `admits` refused a connection, as a sentence.
    ///
    /// It is one printable line of bounded length, whatever the headers hold.
    static func refusal(origin: String, host: String, isSecure: Bool) -> String {
        let page = printable(origin)
        guard let authority = HostAndPort(host), WebOrigin(origin) == WebOrigin(of: authority, isSecure: isSecure)
        else {
            return "Pages of \(page) may not connect to this server, unless it is started with --allow-origin."
        }
        let name = printable(authority.host)
        return "Pages of \(page) may not connect to this server, unless it is started with --host-name \(name)."
    }

    /// Whether `text` can be one of `hostNames`: a host without scheme, port and path.
    package static func isHostName(_ text: String) -> Bool {
        HostAndPort(text).map { $0.port == nil } ?? false
    }

    /// The beginning of a header's value, with question marks for what is not printable ASCII.
    private static func printable(_ text: String) -> String {
        let limit = 200
        let scalars = text.unicodeScalars.prefix(limit).map { (0x21..<0x7F).contains($0.value) ? $0 : "?" }
        return String(String.UnicodeScalarView(scalars)) + (text.unicodeScalars.count > limit ? "…" : "")
    }
}
