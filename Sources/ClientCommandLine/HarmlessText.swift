/// A text for a terminal without control characters but for line ends and tabs: names and reasons may come from
/// anybody, and the terminal would obey.
package func harmless(_ text: String) -> String {
    func isControl(_ scalar: Unicode.Scalar) -> Bool {
        (scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)) && scalar != "\n" && scalar != "\t"
    }
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{FFFD}" : $0 }))
}
