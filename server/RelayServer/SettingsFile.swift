import FoundationEssentials
import Wording

/// Reads a settings file: one JSON object whose values are numbers.
///
/// People write these files. `JSONDecoder` accepts a repeated name and a comma too many without a word, and does not say
/// where a file is wrong; so the object is taken apart here, and the decoder reads its texts.
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
        /// Something else, in words such as "a text". What a list or an object holds is not read.
        case other(String)
    }

    /// A name of the object with its value.
    struct Member: Equatable {
        var name: String
        /// The byte at which the name begins.
        var offset: Int
        var value: Value
    }

    private let bytes: [UInt8]
    private var position = 0
    private var isBegun = false
    private var isOver = false

    /// Creates a reader of `file`, before the first member.
    ///
    /// - Throws: `SettingsError` if the file is not text in UTF-8.
    init(_ file: Data) throws(SettingsError) {
        guard String(bytes: file, encoding: .utf8) != nil else { throw SettingsError("it is not text in UTF-8") }
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        bytes = Array(file.starts(with: mark) ? file.dropFirst(mark.count) : file)
    }

    /// Reads the next member.
    ///
    /// - Returns: The member; `nil` behind the last one.
    /// - Throws: `SettingsError` if the file is not an object of strict JSON so far.
    mutating func next() throws(SettingsError) -> Member? {
        guard !isOver else { return nil }
        guard try isBegun ? isFollowedByAnother() : isBeginningOfMembers() else {
            guard peek() == nil else { throw unexpected("nothing but the end of the file") }
            isOver = true
            return nil
        }
        guard peek() == UInt8(ascii: "\"") else { throw unexpected("a name in double quotes") }
        let offset = position
        let name = try text()
        guard peek() == UInt8(ascii: ":") else { throw unexpected("a colon") }
        position += 1
        return Member(name: name, offset: offset, value: try value())
    }

    /// Where a member is.
    func place(of member: Member) -> Place { place(of: member.offset) }

    /// Passes the object's beginning, and its end if it has no members.
    private mutating func isBeginningOfMembers() throws(SettingsError) -> Bool {
        guard peek() == UInt8(ascii: "{") else {
            throw SettingsError("it is not a JSON object, such as {\"maximumRooms\": 10, \"joinTimeout\": 5}")
        }
        position += 1
        isBegun = true
        guard peek() == UInt8(ascii: "}") else { return true }
        position += 1
        return false
    }

    /// Passes the comma before another member, or the object's end.
    private mutating func isFollowedByAnother() throws(SettingsError) -> Bool {
        switch peek() {
        case UInt8(ascii: ","):
            let comma = position
            position += 1
            guard peek() != UInt8(ascii: "}") else {
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
        switch peek() {
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
        // RFC 8259, section 6. What is beyond the range of `Double` becomes infinite or 0, which no setting can be.
        guard text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil, let number = Double(text)
        else { throw SettingsError("\(place(of: position)): \(SettingsError.quoted(text)) is no number in JSON") }
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
        guard end < bytes.count, bytes[end] != 0x0A, bytes[end] != 0x0D else {
            throw SettingsError("\(place(of: start)): the closing quote of this text is missing")
        }
        guard bytes[end] == UInt8(ascii: "\"") else {
            let escape = "\\u" + Self.hexadecimal(UInt32(bytes[end]))
            throw SettingsError("\(place(of: end)): a tab or another control character in a text; write \(escape)")
        }
        guard let text = try? JSONDecoder().decode(String.self, from: Data(bytes[start...end])) else {
            throw SettingsError("\(place(of: start)): this text has a backslash with something that JSON does not know")
        }
        position = end + 1
        return text
    }

    /// Passes white space; returns the byte behind it, `nil` at the end.
    private mutating func peek() -> UInt8? {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
    }

    /// The error for something else than `expected` here.
    private func unexpected(_ expected: String) -> SettingsError {
        let scalar = String(decoding: bytes[position...], as: UTF8.self).unicodeScalars.first
        let found = scalar.map { "not \(Self.words(for: $0))" } ?? "and the file ends"
        return SettingsError("\(place(of: position)): \(expected) must be here, \(found)")
    }

    /// A character in quotes, or its code if it cannot be seen.
    private static func words(for scalar: Unicode.Scalar) -> String {
        switch scalar.properties.generalCategory {
        case .control, .format, .spaceSeparator, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
            "U+" + hexadecimal(scalar.value)
        default: SettingsError.quoted(String(scalar))
        }
    }

    private static func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    private func place(of position: Int) -> Place {
        let before = bytes[..<position]
        let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        let column = String(decoding: before[lineStart...], as: UTF8.self).count + 1
        return Place(line: before.count { $0 == 0x0A } + 1, column: column)
    }
}

extension SettingsError {
    /// A piece of the file in quotes: its beginning, in one line and without control characters.
    static func quoted(_ text: String) -> String {
        let beginning = harmless(String(String.UnicodeScalarView(text.unicodeScalars.prefix(64))))
        return "“\(String(beginning.map { $0.isNewline || $0 == "\t" ? "\u{FFFD}" : $0 }))”"
    }
}
