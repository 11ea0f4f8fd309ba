import Glibc
import MediaCore
package import MediaFiles
import Threading

/// Why a recording ended early.
public struct RecordingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What a file or the directory failed with.
    package let cause: MediaFileError

    init(_ cause: MediaFileError) {
        self.cause = cause
    }

    /// What happened and what to do about it.
    public var description: String { "\(cause)" }
    /// Whether the disk is full.
    public var isStorageFull: Bool { cause.code == .storageFull }
    /// Whether there is a file of that name.
    var isFileThere: Bool { cause.code == .fileExists }

    init(_ shortage: ThreadShortage, recordingTo directory: String) {
        cause = MediaFileError(.outOfResources, .create, "a recording in \(directory)", "\(shortage)")
    }
}

/// What a recorder has written.
public struct RecordingStatistics: Hashable, Sendable {
    /// The paths of the files, in order; of `png` those of the first picture of each size.
    public var files: [String] = []
    /// Frames in the files.
    public var framesWritten = 0
    /// Frames that were left out, because the disk was too slow or full.
    public var framesDropped = 0
    /// What ended the recording, if something did.
    public var error: RecordingError?

    /// Nothing yet.
    public init() {}
}

/// Records a remote track to files, on a thread of its own; a slow disk costs frames of the recording and nothing else.
///
/// The file's name is `<publisher>-<track name>-<recorder's id>`. A file that exists is never overwritten: a number is
/// added. Compressed formats hold exactly what came over the wire, and a change of the picture's size begins another
/// file. Beside the video lies `….frames.jsonl` with a line for each frame.
///
/// The recording ends with `stop`, when the track is withdrawn, or with the session. Its files are complete then, and its
/// thread is gone.
public final class TrackRecorder: Sendable {
    /// What is written.
    public enum Format: String, CaseIterable, Sendable {
        /// WebM with the frames as received.
        case webm
        /// IVF with the frames as received.
        case ivf
        /// Raw pictures in one file.
        case y4m
        /// One file a picture.
        case png
    }

    private let track: RemoteVideoTrack
    private let tap: RecorderTap
    private let statisticsBox = Monitor(RecordingStatistics())
    private let thread = Monitor<WorkerThread?>(nil)
    private let threadEnded = Promise<Void>()

    /// Starts to record `track` into `directory`, which is made if it is not there.
    ///
    /// - Parameters:
    ///   - track: The track.
    ///   - directory: Where the files go.
    ///   - recorderID: Tells the files of several recorders of one track apart; usually the own participant's `sid`.
    ///   - format: What is written.
    /// - Throws: `RecordingError` when the directory cannot be made or written to, or there is no thread; what fails later
    ///   is in `statistics`.
    public init(track: RemoteVideoTrack, directory: String, recorderID: String, format: Format) throws(RecordingError) {
        self.track = track
        try Self.prepareDirectory(directory)
        let name = Self.fileName(of: track, recorderID)
        let frameRate = track.frameRate
        tap = RecorderTap(format: format) { [weak track] in track?.requestKeyframe() }
        let (tap, statistics, threadEnded) = (tap, statisticsBox, threadEnded)
        let codec = track.trackCodec ?? .forPublishing
        do throws(ThreadShortage) {
            try thread.withLock { thread throws(ThreadShortage) in
                thread = try WorkerThread(name: "recorder") {
                    let files = RecordingFiles(
                        directory: directory,
                        name: name,
                        format: format,
                        codec: codec,
                        frameRate: frameRate
                    )
                    Self.record(files, from: tap, into: statistics)
                    threadEnded.fulfill(())
                }
            }
        } catch {
            throw RecordingError(error, recordingTo: directory)
        }
        track.addSink(tap)
    }

    /// A recorder that is dropped without `stop` completes its file by itself, soon.
    deinit {
        track.removeSink(tap)
        tap.close()
    }

    /// What has been written.
    public var statistics: RecordingStatistics {
        var statistics = statisticsBox.withLock { $0 }
        statistics.framesDropped += tap.dropped
        return statistics
    }

    /// Ends the recording once what waits is written, and completes the file; blocks until then.
    ///
    /// Any thread; stopping twice does nothing.
    public func stop() {
        track.removeSink(tap)
        tap.close()
        thread.withLock { $0 }?.join()
    }

    /// Waits until the recording has ended, so that its files are complete and `statistics` is final.
    ///
    /// A cancelled task waits as well.
    public func ended() async {
        _ = await threadEnded.value()
        thread.withLock { $0 }?.join()
    }

    private static func record(
        _ files: consuming RecordingFiles,
        from tap: RecorderTap,
        into statistics: Monitor<RecordingStatistics>
    ) {
        while let frame = tap.take() {
            do throws(RecordingError) {
                guard statistics.withLock({ $0.error }) == nil else {
                    statistics.withLock { $0.framesDropped += 1 }
                    continue
                }
                let newFile = try files.write(frame)
                statistics.withLock { statistics in
                    statistics.framesWritten += 1
                    if let newFile { statistics.files.append(newFile) }
                }
            } catch {
                statistics.withLock { statistics in
                    statistics.framesDropped += 1
                    statistics.error = error
                }
                files.abandon()
            }
        }
        do throws(RecordingError) {
            try files.finish()
        } catch {
            statistics.withLock { $0.error = $0.error ?? error }
        }
    }

    /// The name of all files of a recording, without number and extension.
    ///
    /// Of the 255 bytes that Linux allows (`NAME_MAX`), numbers and extension take up to 17, and the name that a PNG
    /// file has until it is whole another 13.
    private static func fileName(of track: RemoteVideoTrack, _ recorderID: String) -> String {
        let parts = [(track.publisherIdentity, 90), (track.name, 90), (recorderID, 32)]
        return parts.map { fileName($0.0, limit: $0.1) }.joined(separator: "-")
    }

    /// Makes the directory `path`, and those above it, where they are not there, and checks that it takes files.
    ///
    /// - Throws: `RecordingError` when it cannot be made or written to.
    package static func prepareDirectory(_ path: String) throws(RecordingError) {
        func failure(_ status: Int32) -> RecordingError {
            RecordingError(MediaFileError(.makeDirectory, path, status: status))
        }
        guard !path.isEmpty else { throw failure(ENOENT) }
        var partial = path.hasPrefix("/") ? "/" : ""
        for component in path.split(separator: "/") {
            partial += (partial.isEmpty || partial.hasSuffix("/") ? "" : "/") + component
            guard unsafe mkdir(partial, 0o755) != 0, errno != EEXIST else { continue }
            throw failure(errno)
        }
        // A file in its place, or no right to write there, is better known now than at the first frame.
        guard unsafe access("\(path)/.", W_OK | X_OK) == 0 else { throw failure(errno) }
    }

    /// A name as part of a file's name: no slash, no leading dot, no control characters, at most `limit` bytes.
    ///
    /// By scalars, because a slash with an accent is one character, and still a slash to the system.
    static func fileName(_ name: String, limit: Int) -> String {
        var safe = ""
        for scalar in name.unicodeScalars {
            let isSafe = scalar != "/" && scalar.properties.generalCategory != .control
            safe.unicodeScalars.append(isSafe ? scalar : "_")
            if safe.utf8.count > limit {
                safe.unicodeScalars.removeLast()
                break
            }
        }
        return safe.hasPrefix(".") ? "_" + safe.dropFirst() : safe
    }
}

/// The recorder's end of the track: takes frames on the decoder's thread.
final class RecorderTap: ReceivedFrameSink, Sendable {
    /// Raw pictures wait in few, as each is large; compressed frames wait in up to two seconds.
    private let pictures: BoundedQueue<ReceivedFrame>?
    private let frames: FrameQueue
    private let requestKeyframe: @Sendable () -> Void
    private let droppedPictures = Monitor(0)

    init(format: TrackRecorder.Format, requestKeyframe: @escaping @Sendable () -> Void) {
        pictures = format == .y4m || format == .png ? BoundedQueue(depth: 8) : nil
        frames = FrameQueue(FrameQueue.Depths(dropTopLayer: 30, dropMiddleLayer: 45, skip: 60, catchUp: 120))
        self.requestKeyframe = requestKeyframe
    }

    var wantsPictures: Bool { pictures != nil }

    var dropped: Int { frames.dropped + droppedPictures.withLock { $0 } }

    func begin(with opening: [ReceivedFrame]) {
        // Of pictures there is nothing to begin with: nobody wanted them.
        if pictures == nil { frames.begin(with: opening) }
    }

    func receive(_ frame: ReceivedFrame) {
        if let pictures {
            if frame.picture != nil && !pictures.put(frame) { droppedPictures.withLock { $0 += 1 } }
        } else if case .needsKeyframe = frames.put(frame) {
            requestKeyframe()
        }
    }

    func end() {
        close()
    }

    func take() -> ReceivedFrame? {
        if let pictures { pictures.take() } else { frames.take() }
    }

    func close() {
        pictures?.close()
        frames.close()
    }
}
