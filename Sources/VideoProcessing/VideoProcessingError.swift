/// Why video processing could not be set up.
package struct VideoProcessingError: Error, Hashable, Sendable {
    /// What went wrong.
    package struct Code: Hashable, Sendable {
        private enum Value {
            case noDecoder
        }

        private let value: Value

        /// The JPEG library gave no decoder.
        package static let noDecoder = Code(value: .noDecoder)
    }

    /// What went wrong.
    package let code: Code
    /// What the library says.
    package let reason: String
}

extension VideoProcessingError: CustomStringConvertible {
    /// What went wrong and what to do, in a sentence or two.
    package var description: String {
        "Cannot set up a JPEG decoder (\(reason)). Check that memory is left, and that libturbojpeg is version 2.1."
    }
}
