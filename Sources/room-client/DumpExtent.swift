import MediaCore
import MediaFiles

/// How far a dump was read.
struct DumpExtent {
    /// The part of a file that was not read, by the byte with which it begins.
    enum Unread: Equatable {
        /// The file ends in the middle of the frame that is there.
        case incompleteFrame(Int64)
        /// Another file was appended there.
        case anotherFile(Int64)
    }

    /// The size that the file states.
    var dimensions: Dimensions
    /// The part that was not read; `nil` if there is none.
    var unread: Unread?
}

extension DumpExtent.Unread {
    /// The first byte of the part.
    var offset: Int64 {
        switch self {
        case .incompleteFrame(let offset), .anotherFile(let offset): offset
        }
    }

    /// The unread part after an error of reading a frame: a dump may end anywhere, because a program that is killed
    /// leaves it so.
    ///
    /// - Parameter error: The error of reading a frame.
    /// - Returns: The incomplete frame.
    /// - Throws: `error` if it does not mean that the file ends in the middle of a frame.
    static func cutOff(by error: MediaFileError) throws(MediaFileError) -> DumpExtent.Unread {
        guard error.code == .truncated, let offset = error.offset else { throw error }
        return .incompleteFrame(offset)
    }
}
