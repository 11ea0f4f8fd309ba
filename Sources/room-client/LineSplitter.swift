/// Cuts bytes into lines, and keeps no more of a line than a bound.
struct LineSplitter {
    /// A line without its end.
    enum Line: Hashable, Sendable {
        case whole(String)
        /// A line of more than `longest` bytes: how it begins.
        case tooLong(String)
    }

    /// The most bytes of a line: more than any command has.
    static let longest = 4096
    /// The bytes of a line that is too long that are worth reporting.
    private static let shown = 40

    private var line: [UInt8] = []
    private var isTooLong = false

    /// Takes in bytes.
    ///
    /// - Returns: The lines that they end.
    mutating func add(_ bytes: some Sequence<UInt8>) -> [Line] {
        var lines: [Line] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                lines.append(takeLine())
            } else if line.count < Self.longest {
                line.append(byte)
            } else {
                isTooLong = true
            }
        }
        return lines
    }

    /// The last line, if it has no end.
    mutating func finish() -> Line? { line.isEmpty ? nil : takeLine() }

    private mutating func takeLine() -> Line {
        defer {
            line.removeAll(keepingCapacity: true)
            isTooLong = false
        }
        if isTooLong { return .tooLong(String(decoding: line.prefix(Self.shown), as: UTF8.self)) }
        return .whole(String(decoding: line, as: UTF8.self))
    }
}
