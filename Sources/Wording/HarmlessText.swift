/// A text for a terminal without control characters but for line ends and tabs, and without those that turn the
/// direction of writing: names and reasons may come from anybody, and the terminal would obey.
package func harmless(_ text: String) -> String {
    func isControl(_ scalar: Unicode.Scalar) -> Bool {
        (scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t")
            || scalar.properties.isBidiControl
    }
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{FFFD}" : $0 }))
}
