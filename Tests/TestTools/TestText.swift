import Testing

/// A text that a test is given, whose beginning alone is in the test's log.
package struct TestText: CustomTestStringConvertible, ExpressibleByStringInterpolation, Sendable {
    package let text: String

    /// The text `text`.
    package init(_ text: String) { self.text = text }

    /// The text `value`.
    package init(stringLiteral value: String) { text = value }

    package var testDescription: String {
        text.utf8.count <= 100 ? "\"\(text)\"" : "\"\(text.prefix(60))…\" (\(text.utf8.count) bytes)"
    }
}
