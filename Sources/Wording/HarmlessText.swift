/// A text for a terminal without control characters but for line ends and tabs, and without those that turn the
/// direction of writing: names and reasons may come from anybody, and the terminal would obey.
package func harmless(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{FFFD}" : $0 }))
}

/// An object of JSON for a terminal: the characters that `harmless` replaces are written as escapes, so that a reader of the
/// JSON gets them as they were.
package func harmless(json: String) -> String {
    guard json.unicodeScalars.contains(where: isControl) else { return json }
    return json.unicodeScalars.reduce(into: "") { text, scalar in
        guard isControl(scalar) else { return text.unicodeScalars.append(scalar) }
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}

/// Whether a terminal may obey a character; none has more than 16 bits.
private func isControl(_ scalar: Unicode.Scalar) -> Bool {
    (scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t")
        || scalar.properties.isBidiControl
}
