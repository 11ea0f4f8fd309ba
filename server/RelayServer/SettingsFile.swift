import FoundationEssentials

/// Reads a settings file: one JSON object whose values are numbers.
///
/// People write these files. `JSONDecoder` accepts a repeated name and a comma too many without a word, and does not say
/// where a file is wrong; so the object is taken apart here, and the decoder reads its texts and numbers.
struct SettingsFile {
    /// A place in the file, both from 1 on; columns count characters.
    struct Place: Equatable, CustomStringConvertible {
        var line: Int
        var column: Int

        var description: String { "line \(line), column \(column)" }
    }

    /// A value of the object.
    enum Value: Equatable {
        case number(Double)
        /// Something else, in words such as "a text".
        case other(String)
    }

    /// A name of the object with its value.
    struct Member: Equatable {
        var name: String
        /// Where the name is.
        var place: Place
        var value: Value
    }

    private let bytes: [UInt8]
    private var position = 0

    /// Reads the object's members in their order.
    ///
    /// An array or an object within the object is no setting's value, so nothing is read from there on.
    ///
    /// - Returns: The members; no two have the same name.
    /// - Throws: `SettingsError` if the file is not an object of strict JSON in UTF-8, or if a name is repeated.
    static func members(of file: Data) throws(SettingsError) -> [Member] {
        guard String(bytes: file, encoding: .utf8) != nil else { throw SettingsError("it is not text in UTF-8") }
        var reader = SettingsFile(bytes: Array(file))
        return try reader.members()
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    private mutating func members() throws(SettingsError) -> [Member] {
        guard next() == UInt8(ascii: "{") else {
            throw SettingsError("it is not a JSON object, such as {\"maximumRooms\": 10, \"joinTimeout\": 5}")
        }
        position += 1
        var members: [Member] = []
        if next() == UInt8(ascii: "}") {
            position += 1
        } else {
            while true {
                let member = try member()
                if let other = members.first(where: { $0.name == member.name }) {
                    let name = SettingsError.quoted(member.name)
                    throw SettingsError("\(name) is set twice, at \(other.place) and \(member.place); leave one out")
                }
                members.append(member)
                if isContainer { return members }
                if try !isFollowedByAnother() { break }
            }
        }
        guard next() == nil else { throw unexpected("nothing but the end of the file") }
        return members
    }

    private mutating func member() throws(SettingsError) -> Member {
        guard next() == UInt8(ascii: "\"") else { throw unexpected("a name in double quotes") }
        let place = place(of: position)
        let name = try text()
        guard next() == UInt8(ascii: ":") else { throw unexpected("a colon") }
        position += 1
        return Member(name: name, place: place, value: try value())
    }

    /// Whether an array or an object begins here.
    private var isContainer: Bool {
        position < bytes.count && [UInt8(ascii: "["), UInt8(ascii: "{")].contains(bytes[position])
    }

    /// Passes the comma before another member, or the object's end.
    private mutating func isFollowedByAnother() throws(SettingsError) -> Bool {
        switch next() {
        case UInt8(ascii: ","):
            let comma = position
            position += 1
            guard next() != UInt8(ascii: "}") else {
                throw SettingsError("\(place(of: comma)): nothing follows this comma; leave it out")
            }
            return true
        case UInt8(ascii: "}"):
            position += 1
            return false
        default: throw unexpected("a comma or “}”")
        }
    }

    private mutating func value() throws(SettingsError) -> Value {
        switch next() {
        case UInt8(ascii: "\""):
            _ = try text()
            return .other("a text")
        case UInt8(ascii: "["): return .other("a list")
        case UInt8(ascii: "{"): return .other("an object")
        default: break
        }
        let word = bytes[position...].prefix { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard !word.isEmpty else { throw unexpected("a number") }
        let text = String(decoding: word, as: UTF8.self)
        if ["true", "false", "null"].contains(text) {
            position = word.endIndex
            return .other(text)
        }
        guard let number = try? JSONDecoder().decode(Double.self, from: Data(word)) else {
            throw SettingsError("\(place(of: position)): \(SettingsError.quoted(text)) is no number in JSON")
        }
        position = word.endIndex
        return .number(number)
    }

    /// Reads the text whose opening quote is here.
    private mutating func text() throws(SettingsError) -> String {
        let start = position
        var end = start + 1
        while end < bytes.count, bytes[end] != UInt8(ascii: "\""), bytes[end] >= 0x20 {
            end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard end < bytes.count, bytes[end] == UInt8(ascii: "\"") else {
            throw SettingsError("\(place(of: start)): the closing quote of this text is missing")
        }
        guard let text = try? JSONDecoder().decode(String.self, from: Data(bytes[start...end])) else {
            throw SettingsError("\(place(of: start)): this text has a backslash that means nothing in JSON")
        }
        position = end + 1
        return text
    }

    /// Passes white space; returns the byte behind it, `nil` at the end.
    private mutating func next() -> UInt8? {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
    }

    /// The error for something else than `expected` here.
    private func unexpected(_ expected: String) -> SettingsError {
        let scalar = String(decoding: bytes[position...], as: UTF8.self).unicodeScalars.first
        let found = scalar.map { "not \(SettingsError.quoted(String($0)))" } ?? "and the file ends"
        return SettingsError("\(place(of: position)): \(expected) must be here, \(found)")
    }

    private func place(of position: Int) -> Place {
        let before = bytes[..<position]
        let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        let column = String(decoding: before[lineStart...], as: UTF8.self).count + 1
        return Place(line: before.count { $0 == 0x0A } + 1, column: column)
    }
}

extension SettingsError {
    /// A piece of the file in quotes: its beginning, without control characters.
    static func quoted(_ text: String) -> String {
        let scalars = text.unicodeScalars.prefix(64)
            .map { $0.properties.generalCategory == .control || $0.properties.isBidiControl ? "\u{FFFD}" : $0 }
        return "“\(String(String.UnicodeScalarView(scalars)))”"
    }
}
