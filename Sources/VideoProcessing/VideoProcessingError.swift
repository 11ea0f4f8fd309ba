/// The reason why video processing could not be set up.
package struct VideoProcessingError: Error, Hashable, Sendable {
    /// The kind of error.
    package struct Code: Hashable, Sendable {
        private enum Value {
            case noDecoder
        }

        private let value: Value

        /// The JPEG library gave no decoder.
        package static let noDecoder = Code(value: .noDecoder)
    }

    /// The kind of error.
    package let code: Code
    /// The library's message.
    package let reason: String
}

extension VideoProcessingError: CustomStringConvertible {
    /// What went wrong and what to do, in one or two sentences.
    package var description: String {
        "Cannot set up a JPEG decoder (\(reason)). Check that memory is left, and that libturbojpeg is version 2.1."
    }
}
