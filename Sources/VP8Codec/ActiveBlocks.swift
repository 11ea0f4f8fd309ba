import CVPX
import MediaCore

/// The map by which libvpx is told which macroblocks to encode; the others stay as in the frame that is referred to.
struct ActiveBlocks {
    private var map: [UInt8] = []
    private var isSet = false

    /// The number of macroblocks of a picture.
    static func count(of dimensions: Dimensions) -> Int { columns(of: dimensions) * rows(of: dimensions) }

    /// Limits the next frames of this size to these macroblocks, counted row by row; `nil` for all.
    mutating func set(
        _ blocks: Range<Int>?,
        of dimensions: Dimensions,
        in context: borrowing CodecContext
    ) throws(VP8Error) {
        guard blocks != nil || isSet else { return }
        let (rows, columns) = (UInt32(Self.rows(of: dimensions)), UInt32(Self.columns(of: dimensions)))
        guard let blocks else {
            let status = unsafe cvpx_set_active(context.pointer, nil, rows, columns)
            try context.check(status, "make all macroblocks active")
            isSet = false
            return
        }
        isSet = true
        let count = Self.count(of: dimensions)
        if map.count != count { map = [UInt8](repeating: 0, count: count) }
        for index in map.indices { map[index] = blocks.contains(index) ? 1 : 0 }
        let status = unsafe map.withUnsafeMutableBufferPointer { map in
            unsafe cvpx_set_active(context.pointer, map.baseAddress, rows, columns)
        }
        try context.check(status, "set the active macroblocks")
    }

    private static func columns(of dimensions: Dimensions) -> Int { (dimensions.width + 15) / 16 }
    private static func rows(of dimensions: Dimensions) -> Int { (dimensions.height + 15) / 16 }
}
