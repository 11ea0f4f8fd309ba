import CWebSockets
import Glibc
import MediaCore
import Threading

/// Finds out, step by step, what is behind a server's URL: for people whose connection fails.
///
/// It uses a plain blocking socket, because libwebsockets reports one sentence for all that can go wrong. No call may
/// be made on a loop's thread.
package struct HostProbe: Sendable {
    /// What became of the attempt to connect to one address.
    package struct Attempt: Hashable, Sendable {
        /// The numeric address without the port.
        package let address: String
        /// The `errno`; 0 if the connection was made.
        package let status: Int32
        /// How long it took.
        package let duration: Duration

        /// An attempt with its result.
        package init(address: String, status: Int32, duration: Duration) {
            self.address = address
            self.status = status
            self.duration = duration
        }
    }

    /// What a server answers to the request for a WebSocket.
    package enum Answer: Hashable, Sendable {
        /// An HTTP answer: its status, the program that it names, the subprotocol, and the first line of its body.
        case http(status: Int, server: String, subprotocol: String, sentence: String)
        /// The first line of something that is not HTTP, without control characters.
        case other(String)
        /// A TLS record.
        case tls
        /// The server ended the connection without an answer.
        case hungUp
        /// No answer came in time.
        case silence
    }

    /// The most bytes of an answer that are read.
    private static let longestAnswer = 4096

    /// The server.
    package let url: WebSocketURL

    /// A probe of the server at `url`.
    package init(_ url: WebSocketURL) {
        self.url = url
    }

    /// Looks the server's name up; it may take as long as the system's name servers like.
    ///
    /// - Returns: The numeric addresses, in the system's order; or why there is none, as `getaddrinfo` says it.
    package func resolve() -> Result<[String], HostProbeFailure> {
        SocketAddress.resolve(host: url.host, port: url.port)
            .map { $0.map(\.text) }
            .mapError { HostProbeFailure(status: $0.status, text: $0.text) }
    }

    /// Connects to the server's addresses, one after the other, until one connects.
    ///
    /// - Parameter limit: The time for each address.
    /// - Returns: The attempts in order; only the last one can have succeeded.
    package func connect(within limit: Duration) -> [Attempt] {
        var attempts: [Attempt] = []
        for address in addresses {
            let began = MonotonicClock.now
            let (socket, status) = Self.open(address, until: began + limit)
            if socket >= 0 { close(socket) }
            let duration = MonotonicClock.now.duration(since: began)
            attempts.append(Attempt(address: address.text, status: status, duration: duration))
            if status == 0 { break }
        }
        return attempts
    }

    /// Asks the first address that connects for a WebSocket.
    ///
    /// - Parameters:
    ///   - subprotocol: The subprotocol to offer.
    ///   - limit: The time for connecting to each address, and for the answer.
    /// - Returns: The answer; `nil` if no address connects.
    package func answer(offering subprotocol: String, within limit: Duration) -> Answer? {
        for address in addresses {
            let (socket, status) = Self.open(address, until: MonotonicClock.now + limit)
            guard status == 0 else { continue }
            defer { close(socket) }
            let deadline = MonotonicClock.now + limit
            let request = Array(request(for: subprotocol).utf8)
            let count = unsafe request.withUnsafeBytes {
                unsafe send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count == request.count else { return .hungUp }
            return Self.readAnswer(from: socket, until: deadline)
        }
        return nil
    }

    private var addresses: [SocketAddress] { (try? SocketAddress.resolve(host: url.host, port: url.port).get()) ?? [] }

    private func request(for subprotocol: String) -> String {
        // The key need not be secret, and nothing is sent over this connection: any 16 bytes do.
        """
        GET \(url.path) HTTP/1.1\r
        Host: \(url.authority)\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Key: cm9vbS1jbGllbnQgZG9jIQ==\r
        Sec-WebSocket-Version: 13\r
        Sec-WebSocket-Protocol: \(subprotocol)\r
        \r

        """
    }
}

/// Why a name does not resolve.
package struct HostProbeFailure: Error, Hashable, Sendable {
    /// The status from `getaddrinfo`.
    package let status: Int32
    /// The system's text for it.
    package let text: String
}

// MARK: - The socket

extension HostProbe {
    /// Connects to an address; the status is 0 or an `errno`.
    private static func open(_ address: SocketAddress, until deadline: MonotonicInstant) -> (Int32, status: Int32) {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = socket(address.family, kind, 0)
        guard socket >= 0 else { return (-1, errno) }
        var status = unsafe address.withPointer { unsafe Glibc.connect(socket, $0, $1) } == 0 ? 0 : errno
        if status == EINPROGRESS {
            status = ETIMEDOUT
            if wait(for: POLLOUT, of: socket, until: deadline) {
                var length = socklen_t(MemoryLayout<Int32>.size)
                unsafe getsockopt(socket, SOL_SOCKET, SO_ERROR, &status, &length)
            }
        }
        guard status == 0 else {
            close(socket)
            return (-1, status)
        }
        return (socket, 0)
    }

    private static func readAnswer(from socket: Int32, until deadline: MonotonicInstant) -> Answer {
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: longestAnswer)
        while answer.count < longestAnswer, !HTTPAnswer.isComplete(answer) {
            guard wait(for: POLLIN, of: socket, until: deadline) else { break }
            let count = unsafe recv(socket, &chunk, longestAnswer - answer.count, 0)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return answer.isEmpty ? .hungUp : HTTPAnswer.read(answer) }
            answer += chunk[..<count]
        }
        return answer.isEmpty ? .silence : HTTPAnswer.read(answer)
    }

    private static func wait(for event: Int32, of socket: Int32, until deadline: MonotonicInstant) -> Bool {
        while true {
            let left = deadline.duration(since: MonotonicClock.now).wholeMicroseconds
            var file = pollfd(fd: socket, events: Int16(event), revents: 0)
            let count = unsafe poll(&file, 1, Int32(clamping: max(0, (left + 999) / 1000)))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }
}

/// Reads what a stranger answers, which may have any content.
enum HTTPAnswer {
    /// Whether nothing more is needed: the head of a WebSocket's acceptance, or a line that is not HTTP.
    static func isComplete(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix("HTTP/") else {
            return bytes.count >= 5 && (bytes.contains(0x0A) || bytes[0] == tlsAlert)
        }
        return text.hasPrefix("HTTP/1.1 101") && text.contains("\r\n\r\n")
    }

    /// The record type of a TLS alert (RFC 8446, section 5.1).
    private static let tlsAlert: UInt8 = 21
    /// The most characters of a stranger's line that are shown.
    private static let longestLine = 100

    static func read(_ bytes: [UInt8]) -> HostProbe.Answer {
        if bytes.first == tlsAlert, bytes.dropFirst().first == 3 { return .tls }
        let text = String(decoding: bytes, as: UTF8.self)
        let head = text.prefix(upTo: text.firstRange(of: "\r\n\r\n")?.lowerBound ?? text.endIndex)
        let lines = head.split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ", maxSplits: 2)
        guard text.hasPrefix("HTTP/"), words.count >= 2, let status = Int(words[1]) else {
            return .other(printable(text.split(whereSeparator: \.isNewline).first ?? ""))
        }
        let body = text.dropFirst(head.count).split(whereSeparator: \.isNewline).first ?? ""
        return .http(
            status: status,
            server: header("server", in: lines),
            subprotocol: header("sec-websocket-protocol", in: lines),
            // A page is no sentence.
            sentence: body.contains("<") ? "" : printable(body)
        )
    }

    private static func header(_ name: String, in lines: [Substring]) -> String {
        let line = lines.first { $0.lowercased().hasPrefix("\(name):") }
        return line.map { printable($0.dropFirst(name.count + 1).drop { $0 == " " }) } ?? ""
    }

    /// The start of a text, without control characters, which could change a terminal.
    private static func printable(_ text: Substring) -> String {
        let scalars = text.unicodeScalars.filter { $0.properties.generalCategory != .control }
        return String(scalars.map(Character.init).prefix(longestLine))
    }
}
