import RoomKit

/// What a terminal says about itself.
struct TerminalAnswers: Hashable, Sendable {
    /// Whether it draws sixels: parameter 4 of its primary device attributes (DA1).
    var hasSixels = false
    /// Its colour registers for sixels; VT340, the oldest with sixels, has 16.
    var registers = 16
    /// The largest picture that it draws; xterm's default if it does not say.
    var largestPicture = Dimensions(width: 1000, height: 1000)
    /// Whether the last answer has come.
    var isComplete = false

    /// The questions: colour registers and picture size (XTSMGRAPHICS), then DA1, which every terminal answers.
    static let questions: StaticString = "\u{1B}[?1;1;0S\u{1B}[?2;1;0S\u{1B}[c"

    /// Reads what has come so far; keys that were pressed meanwhile are left out.
    init(_ bytes: [UInt8]) {
        for piece in bytes.split(separator: 0x1B) {
            // After "[?" come numbers, up to a letter.
            guard piece.starts(with: Array("[?".utf8)),
                let last = piece.firstIndex(where: { (0x40...0x7E).contains($0) && $0 != UInt8(ascii: "[") })
            else { continue }
            let body = String(decoding: piece[(piece.startIndex + 2)..<last], as: UTF8.self)
            let numbers = body.split(separator: ";").map { Int($0) ?? -1 }
            switch piece[last] {
            case UInt8(ascii: "c"):
                // The first number is the terminal's class.
                hasSixels = numbers.dropFirst().contains(4)
                isComplete = true
            case UInt8(ascii: "S") where numbers.count >= 3 && numbers[1] == 0:
                if numbers[0] == 1 { registers = max(numbers[2], 8) }
                if numbers[0] == 2, numbers.count == 4, numbers[2] > 0, numbers[3] > 0 {
                    largestPicture = Dimensions(width: numbers[2], height: numbers[3])
                }
            default: break
            }
        }
    }
}
