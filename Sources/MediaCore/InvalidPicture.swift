/// Why a picture of a custom source could not be converted to a frame.
public struct InvalidPicture: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public struct Code: Hashable, Sendable {
        private enum Value {
            case unsupportedFormat, dimensions, planeCount, stride, short, undecodable
        }

        private let value: Value

        /// The pixel format cannot be converted.
        public static let unsupportedFormat = Code(value: .unsupportedFormat)
        /// No picture can have this size.
        public static let dimensions = Code(value: .dimensions)
        /// The pixel format has another number of planes.
        public static let planeCount = Code(value: .planeCount)
        /// A stride is shorter than a row, or longer than any row can be.
        public static let stride = Code(value: .stride)
        /// There are fewer bytes than the layout needs.
        public static let short = Code(value: .short)
        /// The compressed picture is damaged, or has another size than the layout.
        public static let undecodable = Code(value: .undecodable)
    }

    /// The kind of error.
    public let code: Code
    /// What is wrong and what is allowed, in one sentence.
    public let description: String

    /// Creates an error whose sentence is `description`.
    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
