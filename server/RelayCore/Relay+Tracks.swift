import MediaCore
import RoomProtocol
import Wording

extension Relay {
    mutating func publish(
        _ request: Publish,
        by publisher: ParticipantID,
        at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        guard let participant = participants[publisher] else { return }
        var refusal = refusal(of: request, by: participant)
        if refusal == nil, !makeRoomForTrack(at: now) {
            refusal = (.limitReached, "the server's memory for packets is used up")
        }
        if let (code, sentence) = refusal {
            let error = ErrorMessage(code, sentence, fatal: false, requestId: request.requestId)
            return send(.error(error), toParticipant: publisher)
        }
        let info = TrackInfo(
            id: Self.makeID("TR", using: &generator),
            alias: nextAlias,
            name: request.name,
            kind: request.kind,
            source: request.source,
            codec: request.codec,
            width: request.width,
            height: request.height,
            frameRate: request.frameRate,
            simulcastLayers: request.simulcastLayers
        )
        nextAlias += 1
        let track = add(info, of: publisher, in: participant.room, at: now)
        send(.published(Published(requestId: request.requestId, track: info)), toParticipant: publisher)
        sayLayersWanted(track, at: now)
        notices.append(.published(track: info.name, identity: participant.identity, room: participant.room))
        let announcement = TrackPublished(participantId: participant.id, track: info)
        broadcast(.trackPublished(announcement), in: participant.room, except: publisher)
        // So far only the participant itself may know the level of its network.
        shareQuality(of: publisher, at: now)
        for other in rooms[participant.room]?.participants ?? [] where other != publisher {
            guard participants.hot[other.index].subscribesAutomatically else { continue }
            addSubscription(of: other, to: track, at: now)
        }
    }

    private mutating func add(
        _ info: TrackInfo,
        of publisher: ParticipantID,
        in room: String,
        at now: MonotonicInstant
    ) -> TrackID {
        let intake = TrackIntake(publisher: publisher, budget: MediaBudget(fullAt: now))
        let track = tracks.insert(Track(info: info), intake)
        let layers = info.simulcastLayers ?? []
        for number in 0..<max(layers.count, 1) {
            let rate = number < layers.count ? layers[number].bitrate.map(Double.init) : nil
            let encoding = encodings.insert(
                Encoding(keyframes: KeyframeRequestGate(settings.keyframes), announcedRate: rate),
                EncodingFanout(track: track, simulcastLayer: number, stream: TrackStream(settings.stream))
            )
            tracks.hot[track.index].encodings.append(encoding)
        }
        trackOfAlias[info.alias] = track
        trackOfID[info.id] = track
        participants[publisher]?.publications.append(track)
        participants[publisher]?.snapshot = nil
        rooms[room]?.trackCount += 1
        return track
    }

    private func refusal(of request: Publish, by participant: Participant) -> (RoomErrorCode, String)? {
        if let refusal = refusal(ofMedium: request) { return refusal }
        if let problem = WireFormat.problem(withName: request.name) {
            return (.invalidArgument, "the track's name \(problem)")
        }
        if let problem = WireFormat.problem(withName: request.source) {
            return (.invalidArgument, "the track's source \(problem)")
        }
        let names = participant.publications.compactMap { tracks[$0]?.info.name }
        guard !names.contains(request.name) else {
            return (.invalidArgument, "the participant has a track of the name \"\(request.name)\" already")
        }
        guard names.count < WireFormat.maximumTracksPerParticipant else {
            return (.limitReached, "a participant may publish \(WireFormat.maximumTracksPerParticipant) tracks")
        }
        guard (rooms[participant.room]?.trackCount ?? 0) < settings.maximumTracksPerRoom, nextAlias < .max else {
            return (.limitReached, "the room has \(counted(settings.maximumTracksPerRoom, "track")), its limit")
        }
        let automatic = rooms[participant.room]?.participants.count {
            participants.hot[$0.index].subscribesAutomatically && participants[$0]?.id != participant.id
        }
        return refusal(ofSubscriptions: automatic ?? 0).map { (.limitReached, $0) }
    }

    private func refusal(ofMedium request: Publish) -> (RoomErrorCode, String)? {
        guard request.kind == TrackKind.video else {
            return (.notSupported, "only tracks of kind \"\(TrackKind.video)\" are relayed")
        }
        guard let codec = request.codec, let width = request.width, let height = request.height,
            let frameRate = request.frameRate
        else { return (.invalidArgument, "a video track has a codec, a width, a height and a frameRate") }
        guard videoCodecs.contains(codec) else {
            let names = videoCodecs.map { "\"\($0)\"" }.joined(separator: " or ")
            return (.notSupported, "only video of codec \(names) is relayed")
        }
        let largest = Dimensions.largestCodable
        guard (1...largest.width).contains(width), (1...largest.height).contains(height) else {
            return (.invalidArgument, "a size of \(width)x\(height); allowed are 1x1 to \(largest)")
        }
        if let sentence = refusal(ofRate: frameRate) { return (.invalidArgument, sentence) }
        guard let layers = request.simulcastLayers else { return nil }
        return refusal(of: layers, within: Dimensions(width: width, height: height))
    }

    private func refusal(of layers: [SimulcastLayer], within largest: Dimensions) -> (RoomErrorCode, String)? {
        let most = WireFormat.maximumSimulcastLayers
        guard (1...most).contains(layers.count), layers.map(\.simulcastLayer) == Array(layers.indices) else {
            return (.invalidArgument, "simulcastLayers that are not numbered from 0, at most \(most)")
        }
        var smallest = Dimensions(width: 1, height: 1)
        for layer in layers {
            guard (smallest.width...largest.width).contains(layer.width),
                (smallest.height...largest.height).contains(layer.height)
            else {
                let size = "\(layer.width)x\(layer.height)"
                return (.invalidArgument, "a simulcast layer of \(size); allowed are \(smallest) to \(largest)")
            }
            if let rate = layer.bitrate, rate < 1 { return (.invalidArgument, "a simulcast layer of \(rate) bit/s") }
            smallest = Dimensions(width: layer.width, height: layer.height)
        }
        return nil
    }

    // MARK: Withdrawing and pausing

    func ownTrack(_ trackID: String, of participant: ParticipantID) -> TrackID? {
        guard let track = trackOfID[trackID], tracks.hot[track.index].publisher == participant else { return nil }
        return track
    }

    mutating func unpublish(_ request: Unpublish, by publisher: ParticipantID, at now: MonotonicInstant) {
        guard let track = ownTrack(request.trackId, of: publisher) else {
            return sayNotFound(request.trackId, request.requestId, to: publisher, needing: .ownership)
        }
        removeTrack(track, at: now)
    }

    mutating func removeTrack(_ id: TrackID, isQuiet: Bool = false, at now: MonotonicInstant) {
        let publisher = tracks.hot[id.index].publisher
        guard let track = tracks[id], let participant = participants[publisher] else { return }
        for subscriber in subscribers(of: id) + track.pausedSubscribers {
            guard let index = participants.hot[subscriber.index].index(of: id) else { continue }
            abandonTest(of: subscriber, for: id)
            keepRest(for: subscriber, subscription: index, at: now)
            end(participants.hot[subscriber.index].removeSubscription(at: index), of: subscriber)
        }
        for encoding in tracks.hot[id.index].encodings {
            changeStream(of: encoding) { $0.restart(because: .ended) }
            _ = encodings.remove(encoding)
        }
        trackDeadlines.set(nil, for: id)
        trackOfAlias[track.info.alias] = nil
        trackOfID[track.info.id] = nil
        _ = tracks.remove(id)
        participants[publisher]?.publications.removeAll { $0 == id }
        participants[publisher]?.snapshot = nil
        rooms[participant.room]?.trackCount -= 1
        guard !isQuiet else { return }
        notices.append(
            .unpublished(track: track.info.name, identity: participant.identity, room: participant.room)
        )
        let message = TrackUnpublished(participantId: participant.id, trackId: track.info.id)
        broadcast(.trackUnpublished(message), in: participant.room, except: publisher)
    }

    mutating func enable(_ request: Enable, by publisher: ParticipantID, at now: MonotonicInstant) {
        guard let track = ownTrack(request.trackId, of: publisher), let participant = participants[publisher] else {
            return sayNotFound(request.trackId, request.requestId, to: publisher, needing: .ownership)
        }
        guard tracks[track]?.info.enabled == false else { return }
        tracks[track]?.info.enabled = true
        participants[publisher]?.snapshot = nil
        for encoding in tracks.hot[track.index].encodings {
            encodings.hot[encoding.index].acceptance = .fromKeyframe
            // What did not come during the pause is not missing.
            if encodings.hot[encoding.index].hasUsers { encodings.hot[encoding.index].wantedSince = now }
            expectKeyframe(of: encoding, at: now)
        }
        if !participants.hot[publisher.index].isReviewDue { planReview(of: publisher, at: now) }
        let message = TrackEnabled(participantId: participant.id, trackId: request.trackId)
        broadcast(.trackEnabled(message), in: participant.room, except: publisher)
    }

    mutating func disable(_ request: Disable, by publisher: ParticipantID) {
        guard let track = ownTrack(request.trackId, of: publisher), let participant = participants[publisher] else {
            return sayNotFound(request.trackId, request.requestId, to: publisher, needing: .ownership)
        }
        guard tracks[track]?.info.enabled == true else { return }
        tracks[track]?.info.enabled = false
        participants[publisher]?.snapshot = nil
        for encoding in tracks.hot[track.index].encodings {
            encodings.hot[encoding.index].acceptance = .none
            restart(encoding, because: .disabled)
        }
        let message = TrackDisabled(participantId: participant.id, trackId: request.trackId)
        broadcast(.trackDisabled(message), in: participant.room, except: publisher)
    }

    /// Goes by other properties of a track from now on.
    mutating func updateTrack(_ request: UpdateTrack, by publisher: ParticipantID, at now: MonotonicInstant) {
        guard let track = ownTrack(request.trackId, of: publisher) else {
            return sayNotFound(request.trackId, request.requestId, to: publisher, needing: .ownership)
        }
        let former = tracks[track]?.info.simulcastLayers ?? []
        let layers = request.applied(to: former)
        if let sentence = refusal(of: request, for: former) ?? refusal(ofChanged: layers) {
            let error = ErrorMessage(
                .invalidArgument,
                sentence,
                fatal: false,
                requestId: request.requestId,
                trackId: request.trackId
            )
            return send(.error(error), toParticipant: publisher)
        }
        if let frameRate = request.frameRate { tracks[track]?.info.frameRate = frameRate }
        if !layers.isEmpty { setSimulcastLayers(layers, of: track) }
        for (encoding, bitrate) in zip(tracks.hot[track.index].encodings, request.bitrates ?? []) {
            encodings[encoding]?.announcedRate = Double(bitrate)
        }
        participants[publisher]?.snapshot = nil
        reviewSoon(track, at: now)
    }

    /// The reason to refuse a rate outside its limits, or bitrates or sizes that are not one for each encoding.
    private func refusal(of request: UpdateTrack, for layers: [SimulcastLayer]) -> String? {
        if let frameRate = request.frameRate, let sentence = refusal(ofRate: frameRate) { return sentence }
        guard request.bitrates.map({ $0.count == layers.count }) ?? true else {
            return "\"bitrates\" has one for each of the track's simulcastLayers; it has \(layers.count)"
        }
        guard request.sizes.map({ $0.count == layers.count }) ?? true else {
            return "\"sizes\" has one for each of the track's simulcastLayers; it has \(layers.count)"
        }
        return nil
    }

    private func refusal(ofChanged layers: [SimulcastLayer]) -> String? {
        layers.isEmpty ? nil : refusal(of: layers, within: .largestCodable)?.1
    }

    private func refusal(ofRate frameRate: Double) -> String? {
        frameRate > 0 && frameRate <= 1000 ? nil : "a rate of \(frameRate); allowed are more than 0 to 1000 fps"
    }

    /// Discards an encoding's packets; its subscribers wait for the keyframe with which it continues.
    mutating func restart(_ encoding: EncodingID, because reason: DropReason) {
        changeStream(of: encoding) { $0.restart(because: reason) }
        encodings[encoding]?.keyframes.satisfied()
        refreshDeadline(of: encodings.hot[encoding.index].track)
    }

    /// All participants that receive a track, in whichever encoding.
    func subscribers(of track: TrackID) -> [ParticipantID] {
        let all = tracks.hot[track.index].encodings
        guard all.count > 1 else { return encodings.hot[all[0].index].subscribers }
        return all.flatMap { encodings.hot[$0.index].subscribers }
    }
}

extension UpdateTrack {
    /// A track's encodings with the announced bitrates and sizes, as far as there are any.
    fileprivate func applied(to layers: [SimulcastLayer]) -> [SimulcastLayer] {
        var layers = layers
        for (number, bitrate) in zip(layers.indices, bitrates ?? []) { layers[number].bitrate = bitrate }
        for (number, size) in zip(layers.indices, sizes ?? []) {
            (layers[number].width, layers[number].height) = (size.width, size.height)
        }
        return layers
    }
}
