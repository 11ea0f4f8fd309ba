import Diagnosis

/// A finding as lines of a terminal with 80 columns: how much it matters, the part, what was found, and what to do.
struct FindingLines {
    /// The lines.
    let text: String

    /// The columns of a line.
    private static let width = 80
    /// The widths of the first two columns, with the space after them: "problem" and "libraries" are the longest words.
    private static let levelWidth = 8
    private static let checkWidth = 10

    init(_ finding: Finding) {
        let head =
            Self.padded(finding.level.rawValue, Self.levelWidth) + Self.padded(finding.check.rawValue, Self.checkWidth)
        let margin = String(repeating: " ", count: head.count)
        let found = Self.wrapped(finding.found, to: Self.width - head.count)
        let advice = finding.advice.map { Self.wrapped($0, to: Self.width - head.count - 3) } ?? []
        let lines =
            found.enumerated().map { ($0 == 0 ? head : margin) + $1 }
            + advice.enumerated().map { margin + ($0 == 0 ? "-> " : "   ") + $1 }
        text = lines.joined(separator: "\n")
    }

    private static func padded(_ word: String, _ width: Int) -> String {
        word + String(repeating: " ", count: max(1, width - word.count))
    }

    /// The text broken between words; a word that is longer than a line, such as a path, stays whole.
    private static func wrapped(_ text: String, to width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
