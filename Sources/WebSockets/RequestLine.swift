/// The first line of an HTTP request (RFC 9112, section 3).
enum RequestLine {
    /// The longest line to wait for, in bytes; libwebsockets accepts no longer one either.
    static let maximumCount = 8192

    /// The path in a request that begins with `bytes`, as it was sent, without a query.
    ///
    /// - Returns: `nil` as long as the line is incomplete; "" if it has no path.
    static func path(in bytes: UnsafeRawBufferPointer) -> String? {
        guard let end = unsafe bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let words = unsafe bytes[..<end].split(separator: UInt8(ascii: " "), maxSplits: 2)
        guard unsafe words.count == 3 else { return "" }
        return unsafe String(decoding: words[1].prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
    }
}
