package import MediaCore

/// Writes VP8 pictures to a WebM file with one video track.
///
/// Segment and clusters have unknown sizes, as in a live stream, so that a file that is cut anywhere plays up to that
/// point. They keep unknown sizes in a finished file. The reason is that libwebm plays nothing of a cluster with a
/// known size that is cut, and that ffmpeg complains about clusters of unknown size in a segment of known size.
/// `finish` adds the duration, and an index for seeking. Confine to one thread.
package final class WebMWriter: EncodedVideoWriter {
    private struct Cluster {
        var offset: Int64
        var time: Int64
    }

    /// The time after which a new cluster begins even without a keyframe, in milliseconds.
    ///
    /// The WebM guidelines ask for five seconds at most. This also keeps a block's 16-bit time in range of its
    /// cluster's.
    private static let longestCluster: Int64 = 5000

    private var file: OutputFile
    private var header = HeaderBytes()
    private let layout: WebMLayout
    private var clock = FileClock(unitsPerSecond: 1000)
    private var cluster: Cluster?
    private var cues = CueList()
    private var isFinished = false

    /// Creates a file, as `EncodedVideoFormat.makeWriter` says.
    package convenience init(
        path: String,
        dimensions: Dimensions,
        codec: StoredVideoCodec
    ) throws(MediaFileError) {
        try self.init(OutputFile(creating: path), dimensions: dimensions, codec: codec)
    }

    init(
        _ file: consuming OutputFile,
        dimensions: Dimensions,
        codec: StoredVideoCodec
    ) throws(MediaFileError) {
        precondition(dimensions.isCodable, "pictures of \(dimensions)")
        self.file = file
        layout = WebMLayout(dimensions: dimensions, codec: codec)
        let head = layout.bytes.bytes
        try self.file.append(head.span)
    }

    /// Adds a frame, as `EncodedVideoWriter` says.
    package func write(_ frame: EncodedFrame) throws(MediaFileError) {
        precondition(!isFinished, "a frame for \(file.path), which is finished")
        guard clock.newest != nil || frame.info.isKeyframe else { throw .startsWithoutKeyframe(file.path) }
        let time = clock.time(of: frame.info.timestamp)
        if let cluster, frame.info.isKeyframe || time - cluster.time >= Self.longestCluster { self.cluster = nil }
        header.removeAll()
        let cluster = self.cluster ?? Cluster(offset: file.length, time: time)
        if self.cluster == nil {
            header.append(.cluster)
            header.appendUnknownSize()
            header.append(.timestamp, UInt64(time))
        }
        header.append(.simpleBlock)
        header.append(size: 4 + frame.size.bytes)
        header.append(size: WebMLayout.trackNumber)
        header.append(bigEndian: UInt64(time - cluster.time), count: 2)
        header.append(UInt8(frame.info.isKeyframe ? 0x80 : 0))
        let head = header.bytes
        try frame.withBytes { bytes throws(MediaFileError) in try file.append(head.span, bytes) }
        if frame.info.isKeyframe { cues.append(CueList.Cue(time: time, clusterOffset: cluster.offset)) }
        self.cluster = cluster
        clock.wrote(time, of: frame.info.timestamp)
    }

    /// Fills in the duration, and adds the index for seeking.
    package func finish() throws(MediaFileError) {
        guard !isFinished else { return }
        isFinished = true
        guard file.isPatchable, clock.newest != nil else { return }
        try patch(at: layout.durationOffset) { header in
            header.append(.duration, fixedLength: Double(clock.duration).bitPattern)
        }
        let cuesOffset = file.length
        try appendCues()
        try patch(at: layout.contentOffset) { header in
            layout.appendSeekHead(cuesOffset: cuesOffset, to: &header)
        }
    }

    private func appendCues() throws(MediaFileError) {
        header.removeAll()
        header.append(.cues) { list in
            for cue in cues.cues {
                list.append(.cuePoint) { point in
                    point.append(.cueTime, UInt64(cue.time))
                    point.append(.cueTrackPositions) { positions in
                        positions.append(.cueTrack, UInt64(WebMLayout.trackNumber))
                        positions.append(.cueClusterPosition, UInt64(cue.clusterOffset - layout.contentOffset))
                    }
                }
            }
        }
        let head = header.bytes
        try file.append(head.span)
    }

    private func patch(at offset: Int64, _ fill: (inout HeaderBytes) -> Void) throws(MediaFileError) {
        header.removeAll()
        fill(&header)
        let head = header.bytes
        try file.patch(head.span, at: offset)
    }
}

/// The beginning of our WebM files, with the offsets of the gaps that `finish` fills.
struct WebMLayout {
    /// The number of the one track.
    static let trackNumber = 1

    /// The bytes before the first cluster.
    private(set) var bytes = HeaderBytes()
    /// The offset of the segment's content, from which positions in the file count; the seek head is written there.
    let contentOffset: Int64
    /// The offset of the duration.
    let durationOffset: Int64
    private let infoOffset: Int64
    private let tracksOffset: Int64

    /// A seek head with three entries, each position in eight bytes.
    private static let seekHeadLength = 4 + 1 + 3 * (3 + 7 + 11)
    /// A duration: identifier, size, 64-bit floating-point number.
    private static let durationLength = 2 + 1 + 8

    /// Creates the layout of a file of pictures of `dimensions` in `codec`.
    init(dimensions: Dimensions, codec: StoredVideoCodec) {
        var bytes = HeaderBytes()
        bytes.append(.header) { header in
            header.append(.version, 1)
            header.append(.readVersion, 1)
            header.append(.maximumIDLength, 4)
            header.append(.maximumSizeLength, 8)
            header.append(.documentType, "webm")
            // Version 4 has the colour elements; reading the file takes version 2, which has the simple blocks.
            header.append(.documentTypeVersion, 4)
            header.append(.documentTypeReadVersion, 2)
        }
        bytes.append(.segment)
        bytes.appendUnknownSize()
        contentOffset = Int64(bytes.bytes.count)
        bytes.append(voidOf: Self.seekHeadLength)
        infoOffset = Int64(bytes.bytes.count)
        bytes.append(.info) { info in
            info.append(.timestampScale, 1_000_000)
            info.append(.muxingApp, "room")
            info.append(.writingApp, "room")
            info.append(voidOf: Self.durationLength)
        }
        durationOffset = Int64(bytes.bytes.count - Self.durationLength)
        tracksOffset = Int64(bytes.bytes.count)
        bytes.append(.tracks) { tracks in
            tracks.append(.trackEntry) { entry in Self.appendTrack(dimensions, codec, to: &entry) }
        }
        self.bytes = bytes
    }

    private static func appendTrack(
        _ dimensions: Dimensions,
        _ codec: StoredVideoCodec,
        to entry: inout HeaderBytes
    ) {
        entry.append(.trackNumber, UInt64(trackNumber))
        entry.append(.trackUID, 1)
        entry.append(.trackType, 1)
        entry.append(.flagLacing, 0)
        entry.append(.codecID, codec.webmName)
        entry.append(.video) { video in
            video.append(.pixelWidth, UInt64(dimensions.width))
            video.append(.pixelHeight, UInt64(dimensions.height))
            video.append(.colour) { colour in
                // 6 is SMPTE 170M, the matrix of BT.601 (ISO/IEC 23091-2); range 1 is limited (RFC 9559,
                // 5.1.4.1.28.24).
                colour.append(.matrixCoefficients, 6)
                colour.append(.range, 1)
                colour.append(.transferCharacteristics, 6)
                colour.append(.primaries, 6)
            }
        }
    }

    /// Adds the table with the positions of info, tracks and cues; it has the length of its gap.
    func appendSeekHead(cuesOffset: Int64, to bytes: inout HeaderBytes) {
        bytes.append(.seekHead) { head in
            for (id, offset) in [(EBMLID.info, infoOffset), (.tracks, tracksOffset), (.cues, cuesOffset)] {
                head.append(.seek) { seek in
                    seek.append(.seekID, UInt64(id.rawValue))
                    seek.append(.seekPosition, fixedLength: UInt64(offset - contentOffset))
                }
            }
        }
    }
}

/// The points at which players can start.
///
/// The list is thinned out as the file grows, so that its memory does not grow.
struct CueList {
    struct Cue {
        var time: Int64
        var clusterOffset: Int64
    }

    /// The cues, in order of time.
    private(set) var cues: [Cue] = []
    private var leastInterval: Int64 = 0

    /// 4,096 cues take 64 KiB, and are seven seconds apart in a file of eight hours.
    static let limit = 4096

    init() {
        cues.reserveCapacity(Self.limit)
    }

    /// Adds a cue, unless it is too close to the one before for a file of this length.
    mutating func append(_ cue: Cue) {
        if let last = cues.last, cue.time - last.time < leastInterval { return }
        if cues.count == Self.limit { thinOut() }
        cues.append(cue)
    }

    private mutating func thinOut() {
        for index in 0..<cues.count / 2 { cues[index] = cues[2 * index] }
        cues.removeLast(cues.count - cues.count / 2)
        guard let first = cues.first, let last = cues.last else { return }
        leastInterval = (last.time - first.time) / Int64(cues.count)
    }
}
