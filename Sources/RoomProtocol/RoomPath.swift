/// The path of a room in a server's URL: `/rooms/NAME`.
///
/// A proxy, or one of several servers, can route a connection by the path before the handshake. The same room must
/// therefore always have the same path. The name is in Unicode NFC and percent-encoded, except for the unreserved
/// characters of RFC 3986, section 2.3.
package enum RoomPath: Hashable, Sendable {
    /// The path `/`: only the `join` message names the room.
    case anyRoom
    /// `/rooms/NAME`; `join` must name the same room.
    case room(String)

    private static let prefix = "/rooms/"

    /// The path of the room `name`.
    ///
    /// It is `/` for the names `.` and `..`, because URLs give these segments another meaning.
    package static func path(ofRoom name: String) -> String {
        name == "." || name == ".." ? "/" : prefix + percentEncoded(name._nfcCodeUnits)
    }

    /// Reads the path of a request, which may have any content and a query.
    ///
    /// Returns `nil` for a path that names no room, for a wrong percent-encoding and for a name that is not UTF-8.
    package init?(reading target: String) {
        let path = target.prefix { $0 != "?" }
        if path == "/" || path.isEmpty {
            self = .anyRoom
            return
        }
        guard path.hasPrefix(Self.prefix) else { return nil }
        let name = path.dropFirst(Self.prefix.count)
        guard !name.isEmpty, !name.contains("/"), let decoded = Self.percentDecoded(name) else { return nil }
        self = .room(decoded)
    }

    /// Whether a `join` of the room `name` agrees with the path.
    ///
    /// Names are compared by canonical equivalence, so that a client need not normalize them. The standard library
    /// normalizes a name in which U+0344, U+0F73, U+0F75 or U+0F81 follows another mark to a name that it then treats
    /// as different. This is why there is a second comparison.
    package func admits(room name: String) -> Bool {
        switch self {
        case .anyRoom: true
        case .room(let named): named == name || named.utf8.elementsEqual(name._nfcCodeUnits)
        }
    }

    private static func percentEncoded(_ bytes: [UInt8]) -> String {
        var result = ""
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }

    private static func percentDecoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard
                let high = rest.popFirst().flatMap(hexadecimalValue),
                let low = rest.popFirst().flatMap(hexadecimalValue)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexadecimalValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
